;;; session.el --- Emacs's dap-mode drives sdm dap, without a screen  -*- lexical-binding: t -*-

;; emacs --batch -l session.el, with ADAPTER, PROGRAM, SOURCE and LINE in the environment. The test
;; tests/tests/launchers/stories.rs runs it, and holds what the adapter said against the protocol's schema.

;;; Code:

(require 'cl-lib)
(setq dap-auto-configure-features nil
      dap-auto-show-output nil
      lsp-auto-guess-root t
      lsp-keep-workspace-alive nil)
(require 'dap-mode)
(require 'dap-ui)

(defun story-say (format &rest values)
  "Say on standard output what FORMAT makes of VALUES."
  (princ (concat (apply #'format format values) "\n")))

(defun story-wait (what done)
  "Let Emacs work until DONE says so; WHAT is waited for."
  (let ((until (+ (float-time) 180)))
    (while (not (funcall done))
      (when (> (float-time) until)
        (story-say "no %s in three minutes" what)
        (kill-emacs 1))
      (accept-process-output nil 0.05))))

(defun story-frame (session)
  "Where the active frame of SESSION is."
  (let* ((frame (dap--debug-session-active-frame session))
         (source (and frame (gethash "source" frame))))
    (and source (format "%s %s:%s" (gethash "name" frame) (gethash "name" source) (gethash "line" frame)))))

;; As docs/editors.md has it.
(dap-register-debug-provider
 "sdm" (lambda (conf) (plist-put conf :dap-server-path (list (getenv "ADAPTER") "dap"))))

(let ((source (getenv "SOURCE"))
      (ended nil)
      (stops 0)
      (value nil)
      session)
  (add-hook 'dap-stack-frame-changed-hook (lambda (_session) (cl-incf stops)))
  (add-hook 'dap-terminated-hook (lambda (_session) (setq ended t)))
  (puthash source
           (with-temp-buffer
             (insert-file-contents source)
             (forward-line (1- (string-to-number (getenv "LINE"))))
             (list (list :point (point))))
           (dap--get-breakpoints))
  (dap-debug (list :type "sdm" :request "launch" :name "sdm" :program (getenv "PROGRAM")
                   :args ["steps"] :ranks 2 :launcher "local" :threads "classes"))
  (story-wait "stop" (lambda ()
                       (setq session (dap--cur-session))
                       (and session (> stops 0) (story-frame session))))
  (story-say "stopped: %s" (story-frame session))
  (dap--send-message
   (dap--make-request "evaluate"
                      (list :expression "number" :context "hover"
                            :frameId (gethash "id" (dap--debug-session-active-frame session))))
   (lambda (response) (setq value (gethash "result" (gethash "body" response))))
   session)
  (story-wait "value" (lambda () value))
  (story-say "evaluated: %s" value)
  (dap--send-message
   (dap--make-request "scopes"
                      (list :frameId (gethash "id" (dap--debug-session-active-frame session))))
   (lambda (response) (setq value (length (gethash "scopes" (gethash "body" response)))))
   session)
  (story-wait "scopes" (lambda () (equal value 3)))
  (let ((before stops))
    (dap-next session)
    (story-wait "step" (lambda () (and (> stops before) (story-frame session)))))
  (story-say "stepped: %s" (story-frame session))
  (clrhash (dap--get-breakpoints))
  (dap--send-message (dap--set-breakpoints-request source nil) (lambda (_) nil) session)
  (dap-continue session (dap--debug-session-thread-id session))
  (story-wait "end" (lambda () ended))
  ;; dap-mode ends the adapter by itself then.
  (story-wait "goodbye" (lambda () (not (process-live-p (dap--debug-session-proc session)))))
  (story-say "the end"))

;;; session.el ends here
