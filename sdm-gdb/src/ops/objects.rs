//! Variable objects: values whose children are fetched on demand.

use sdm_debug::reply::VarObject;
use sdm_debug::{Failure, FailureCode, Reply};

use super::object_arrays::{self, NewObject, delete_all, make};
use super::object_children::{self, listed};
use super::values::evaluated;
use super::{pointers, strides};
use crate::gdb::Gdb;
use crate::state::objects::{FortranObject, Layout};
use crate::text::value;
use sdm_mi::quote;

/// Maximum number of variable objects of one task, without their children.
const OBJECTS_MAX: usize = 1024;
/// Maximum number of children in one answer.
const CHILDREN_MAX: u32 = 4096;

pub(crate) async fn create(gdb: &Gdb, name: &str, expression: &str) -> Result<Reply, Failure> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !begins || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let text = format!("{name:?} is not a valid name for a variable object");
        return Err(Failure::new(FailureCode::BadCommand, text));
    }
    {
        let state = gdb.get();
        if state.objects.contains_key(name) {
            let text = format!("the variable object {name} exists already");
            return Err(Failure::new(FailureCode::BadCommand, text));
        }
        if state.objects.len() >= OBJECTS_MAX {
            let text = format!("a rank can have at most {OBJECTS_MAX} variable objects");
            return Err(Failure::new(FailureCode::Limit, text));
        }
    }
    let wanted = NewObject {
        name,
        expression,
        place: None,
    };
    match make(gdb, wanted).await {
        Ok(object) => Ok(Reply::VarObject(object)),
        Err(failure) => Err(why_not(gdb, expression, failure).await),
    }
}

/// The reason why gdb cannot make a variable object. gdb does not report it, but the evaluation of the expression does.
async fn why_not(gdb: &Gdb, expression: &str, failure: Failure) -> Failure {
    evaluated(gdb, "", expression)
        .await
        .err()
        .unwrap_or(failure)
}

/// The object's name for MI.
///
/// # Errors
/// No variable object of this task is the root of the name.
fn known(gdb: &Gdb, name: &str) -> Result<String, Failure> {
    let root = name.split('.').next().unwrap_or_default();
    if gdb.get().objects.contains_key(root) {
        return Ok(quote(name.as_bytes()));
    }
    let text = format!("no variable object {name}");
    Err(Failure::new(FailureCode::NoSuchThing, text))
}

pub(crate) async fn children(
    gdb: &Gdb,
    name: &str,
    from: u32,
    count: u32,
) -> Result<Reply, Failure> {
    let (name, of) = (known(gdb, name)?, (name, fortran(gdb, name)));
    let to = from.saturating_add(count.min(CHILDREN_MAX));
    if let (root, Some(array)) = &of
        && !root.contains('.')
        && matches!(array.layout, Layout::Single { .. } | Layout::Refused)
    {
        let (children, more) = object_arrays::elements(gdb, root, array, (from, to)).await?;
        return Ok(Reply::VarChildren { more, children });
    }
    let (mut children, more, hint) = listed(gdb, &name, (from, to)).await?;
    if hint == "map" {
        let both = (from.saturating_mul(2), to.saturating_mul(2));
        let (listed, more, _) = listed(gdb, &name, both).await?;
        let children = object_children::entries(gdb, listed).await;
        return Ok(Reply::VarChildren { more, children });
    }
    if let Some(fortran) = &of.1 {
        // Names of Fortran begin with a letter: this is the compiler's own, as `_vptr`.
        children.retain(|child| !child.expression.starts_with('_'));
        object_arrays::put_right(gdb, fortran, &mut children).await;
    }
    // The members of a class are below its access sections (`public` and so on), of which there are few.
    if children.iter().any(is_access) || (children.is_empty() && from > 0) {
        return members(gdb, &name, from, to).await;
    }
    object_children::show_texts(gdb, &mut children).await;
    // Without a pretty-printer gdb reports the number of children, but not whether there are more.
    let all: u32 = count_of(gdb, &name).await.unwrap_or(0);
    let shown = from.saturating_add(u32::try_from(children.len()).unwrap_or(u32::MAX));
    Ok(Reply::VarChildren {
        more: more || shown < all,
        children,
    })
}

/// The Fortran value to which a variable object belongs; `None` in other languages.
fn fortran(gdb: &Gdb, name: &str) -> Option<FortranObject> {
    let root = name.split('.').next().unwrap_or_default();
    gdb.get().objects.get(root)?.fortran.clone()
}

/// True for gdb's node of all members with one access (`public`, `private`), which is no member.
fn is_access(child: &VarObject) -> bool {
    let names = ["public", "private", "protected"];
    child.type_name.is_empty() && names.contains(&child.expression.as_str())
}

/// The members of a class in an index range, regardless of access.
async fn members(gdb: &Gdb, name: &str, from: u32, to: u32) -> Result<Reply, Failure> {
    let (children, ..) = listed(gdb, name, (0, CHILDREN_MAX)).await?;
    let mut all = Vec::new();
    for child in children {
        if is_access(&child) {
            let name = quote(child.name.as_bytes());
            let (members, ..) = listed(gdb, &name, (0, CHILDREN_MAX)).await?;
            all.extend(members);
        } else {
            all.push(child);
        }
    }
    let to = to as usize;
    let more = all.len() > to;
    all.truncate(to);
    let mut children = all.split_off((from as usize).min(all.len()));
    object_children::show_texts(gdb, &mut children).await;
    Ok(Reply::VarChildren { more, children })
}

async fn count_of(gdb: &Gdb, name: &str) -> Option<u32> {
    let results = gdb
        .mi(format!("-var-info-num-children {name}"))
        .await
        .ok()?;
    results.number("numchild")
}

pub(crate) async fn assign(gdb: &Gdb, name: &str, expression: &str) -> Result<Reply, Failure> {
    let (name, of) = (known(gdb, name)?, (name, fortran(gdb, name)));
    let mut named = match &of {
        (name, Some(array)) => object_arrays::copied_element(array, name),
        _ => None,
    };
    if let (None, (own, Some(fortran))) = (&named, &of) {
        let kind = gdb.mi(format!("-var-info-type {name}")).await?;
        let kind = kind.text("type").unwrap_or_default();
        if pointers::is_pointer_type(kind) {
            return Err(pointers::refusal(own));
        }
        // gdb assigns only texts of the same length.
        if kind.starts_with("character") {
            named = object_arrays::designated(fortran, own);
        }
    }
    let line = match named {
        Some((place, element)) => {
            let text = format!("{element} = {expression}");
            strides::refuse(gdb, place, &text).await?;
            let text = pointers::valued(gdb, place, &text).await?;
            format!(
                "-data-evaluate-expression {place}{}",
                quote(text.as_bytes())
            )
        }
        None => {
            let value = pointers::operand(gdb, expression).await?;
            format!("-var-assign {name} {}", quote(value.as_bytes()))
        }
    };
    let results = gdb.mi(line).await?;
    Ok(Reply::Value(value(
        results.text("value").unwrap_or_default(),
    )))
}

pub(crate) async fn delete(gdb: &Gdb, name: &str) -> Result<Reply, Failure> {
    known(gdb, name)?;
    delete_all(gdb, name).await?;
    Ok(Reply::Done)
}
