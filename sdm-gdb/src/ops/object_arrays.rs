//! Lists the elements of Fortran arrays as variable objects.
//!
//! gdb 13 to 18 assume that the elements of every array are adjacent in memory. For an array with another stride, such
//! as a pointer to `v(1:9:2)`, they list wrong elements and too many. The elements of a contiguous copy are right, and
//! so is one element by itself if no stride is negative.

use std::fmt::Write;

use sdm_debug::Failure;
use sdm_debug::reply::VarObject;

use super::absent::NO_TEXT;
use super::{language, output, pointers, strides};
use crate::gdb::Gdb;
use crate::guards::MadeObject;
use crate::state::objects::{FortranObject, Layout, Object};
use crate::text::{console_line, value};
use sdm_mi::{Results, quote};

/// A variable object to be made.
pub(super) struct NewObject<'a> {
    pub(super) name: &'a str,
    pub(super) expression: &'a str,
    /// MI's options that name the thread and the frame; `None` for the selected ones.
    pub(super) place: Option<&'a str>,
}

impl NewObject<'_> {
    fn line(&self, expression: &str) -> String {
        let (place, name) = (self.place.unwrap_or_default(), self.name);
        let expression = quote(expression.as_bytes());
        format!("-var-create {place}{name} * {expression}")
    }
}

/// Makes a variable object. For an array with strides its children are the array's actual elements.
pub(super) async fn make(gdb: &Gdb, wanted: NewObject<'_>) -> Result<VarObject, Failure> {
    let place = wanted.place.unwrap_or_default();
    let valued = pointers::valued(gdb, place, wanted.expression).await?;
    let line = wanted.line(&valued);
    let (maker, name, first) = (gdb.clone(), wanted.name.to_owned(), line.clone());
    let made = gdb.finish(async move {
        let results = maker.mi(first).await?;
        Ok::<_, Failure>((results, MadeObject::new(&maker, &name)))
    });
    let (results, made) = made.await?;
    let mut object = object_of(&results);
    let fortran = match may_be_fortran(&object) {
        true => fortran(gdb, &wanted, &object).await,
        false => None,
    };
    let target = match &fortran {
        Some(_) if is_pointer(&object) => pointers::object(gdb, place, wanted.expression).await,
        _ => None,
    };
    if let Some(target) = target {
        object = made_again(gdb, &wanted, wanted.line(&target)).await?;
    }
    match fortran.as_ref().map(|it| &it.layout) {
        Some(Layout::Copied { lows }) => {
            let whole = vec![":"; lows.len()].join(",");
            let copy = format!("{}({whole})", wanted.expression);
            let copy = wanted.line(&pointers::valued(gdb, place, &copy).await?);
            object = made_again(gdb, &wanted, repacked(&copy)).await?;
        }
        Some(Layout::Single { lows, highs }) => object.children = count(lows, highs),
        Some(Layout::Plain) if is_class(&object) && pointers::has_functions(gdb).await => {
            let instance = wanted.line(&format!("$_sdm_instance({valued})"));
            object = match made_again(gdb, &wanted, instance).await {
                Ok(object) => object,
                // It is not allocated, or not associated.
                Err(_) => made_again(gdb, &wanted, line).await?,
            };
        }
        _ => {}
    }
    made.keep(Object { fortran });
    object.expression = wanted.expression.to_owned();
    Ok(object)
}

/// Makes a variable object again by another MI line, after deleting the first object.
async fn made_again(gdb: &Gdb, wanted: &NewObject<'_>, line: String) -> Result<VarObject, Failure> {
    let (maker, name) = (gdb.clone(), wanted.name.to_owned());
    let made = gdb.finish(async move {
        // It is gone where another try has failed.
        let _ = maker.mi(format!("-var-delete {name}")).await;
        maker.mi(line).await
    });
    Ok(object_of(&made.await?))
}

/// True for a pointer to data, other than a null pointer.
fn is_pointer(object: &VarObject) -> bool {
    !["0x0", NO_TEXT].contains(&&*object.value.text) && pointers::is_pointer_type(&object.type_name)
}

/// True for an object of a class of Fortran, or an array of such.
fn is_class(object: &VarObject) -> bool {
    object.type_name.starts_with("Type __class_")
}

/// The variable object in a record from gdb.
pub(super) fn object_of(results: &Results) -> VarObject {
    let shown = results.text("value").unwrap_or_default();
    let kind = results.text("type").unwrap_or_default();
    let is_no_text = shown == "0x0" && kind.starts_with("PTR TO -> ( character");
    VarObject {
        name: results.text("name").unwrap_or_default().to_owned(),
        expression: results.text("exp").unwrap_or_default().to_owned(),
        type_name: kind.to_owned(),
        value: value(if is_no_text { NO_TEXT } else { shown }),
        children: results.number("numchild").unwrap_or(0),
        more: results.text("has_more").is_some_and(|more| more != "0"),
        pretty: results.text("dynamic") == Some("1"),
    }
}

/// Deletes a variable object, and the further objects that were made for parts of it.
pub(super) async fn delete_all(gdb: &Gdb, name: &str) -> Result<(), Failure> {
    let part = format!("{name}-");
    let is_one = |it: &&String| *it == name || it.starts_with(&part);
    let names: Vec<String> = gdb.get().objects.keys().filter(is_one).cloned().collect();
    let asked = gdb.clone();
    gdb.finish(async move {
        for name in names {
            asked
                .mi(format!("-var-delete {}", quote(name.as_bytes())))
                .await?;
            asked.edit().objects.remove(&name);
        }
        Ok(())
    })
    .await
}

/// The MI line, executed with `fortran repack-array-slices on`: gdb then evaluates an array with strides as a
/// contiguous copy.
fn repacked(line: &str) -> String {
    let line = quote(line.as_bytes());
    console_line(&format!(
        "with fortran repack-array-slices on -- interpreter-exec mi3 {line}"
    ))
}

/// True if the type of a value may be a Fortran type with parts. In C and C++ only function types have this form.
fn may_be_fortran(object: &VarObject) -> bool {
    let name = &object.type_name;
    name.ends_with(')') || name.starts_with("Type ")
}

async fn fortran(gdb: &Gdb, wanted: &NewObject<'_>, object: &VarObject) -> Option<FortranObject> {
    let place = match wanted.place {
        Some(place) => place.to_owned(),
        None => here(gdb).await?,
    };
    if !language::is_fortran(gdb, &place).await {
        return None;
    }
    let layout = layout(gdb, &place, wanted.expression, object).await;
    Some(FortranObject {
        expression: wanted.expression.to_owned(),
        place: Some(place),
        layout,
    })
}

/// MI's options for the selected thread and frame; `None` if gdb does not report them.
async fn here(gdb: &Gdb) -> Option<String> {
    let frame = gdb.mi("-stack-info-frame").await.ok()?;
    let level: u32 = frame.tuple("frame")?.number("level")?;
    let thread = output::unchecked(gdb, "", "$_gthread").await.ok()?;
    let thread: u32 = thread.trim().parse().ok()?;
    Some(format!("--thread {thread} --frame {level} "))
}

async fn layout(gdb: &Gdb, place: &str, expression: &str, object: &VarObject) -> Layout {
    if is_class(object) {
        let bounds = strides::ends(gdb, place, expression).await;
        return bounds.map_or(Layout::Plain, |(lows, highs)| Layout::Single {
            lows,
            highs,
        });
    }
    if !is_array(object) {
        return Layout::Plain;
    }
    let Some(strided) = strides::strided(gdb, place, expression).await else {
        return Layout::Plain;
    };
    let (lows, highs) = (strided.lows, strided.highs);
    let is_structure = object.type_name.starts_with("Type ");
    match (is_structure, strided.is_backwards) {
        (false, _) => Layout::Copied { lows },
        (true, false) => Layout::Single { lows, highs },
        (true, true) if pointers::has_functions(gdb).await => Layout::Single { lows, highs },
        (true, true) => Layout::Refused,
    }
}

/// True for an array of Fortran's: gdb shows the number of its elements as its value.
fn is_array(object: &VarObject) -> bool {
    object.value.text.starts_with('[') && object.type_name.ends_with(')')
}

/// Number of elements of an array with these bounds; 0 if it has none, or if its bounds are not set yet.
fn count(lows: &[i64], highs: &[i64]) -> u32 {
    strides::count(lows, highs).map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX))
}

/// The element of the array itself for a child of its contiguous copy, and before it MI's options for the thread and
/// frame: `v(3)` for the child `1` of `v(3:9)`. gdb assigns nothing to the child. None for other objects.
pub(super) fn copied_element<'a>(of: &'a FortranObject, name: &str) -> Option<(&'a str, String)> {
    let Layout::Copied { lows } = &of.layout else {
        return None;
    };
    let (_, path) = name.split_once('.')?;
    // gdb counts the last subscript first.
    let parts = path.split('.').zip(lows.iter().rev());
    let subscript =
        |(part, low): (&str, &i64)| Some((part.parse::<i64>().ok()? + low - 1).to_string());
    let mut subscripts: Vec<String> = parts.map(subscript).collect::<Option<_>>()?;
    subscripts.reverse();
    let element = format!("{}({})", of.expression, subscripts.join(","));
    (subscripts.len() == lows.len()).then_some((of.place.as_deref()?, element))
}

/// MI's options for the thread and frame of a Fortran value, and the designator of a part of it. None once the program
/// has run since the object was made.
pub(super) fn designated<'a>(of: &'a FortranObject, name: &str) -> Option<(&'a str, String)> {
    let path = name.split_once('.').map_or("", |(_, path)| path);
    Some((of.place.as_deref()?, designator(&of.expression, path)))
}

/// The elements of an array of structures in an index range, and whether the array has more elements.
pub(super) async fn elements(
    gdb: &Gdb,
    root: &str,
    array: &FortranObject,
    (from, to): (u32, u32),
) -> Result<(Vec<VarObject>, bool), Failure> {
    let Layout::Single { lows, highs } = &array.layout else {
        return Err(strides::refusal(&array.expression));
    };
    let all = count(lows, highs);
    let mut elements = Vec::new();
    for at in from..to.min(all) {
        let (mut rest, mut label) = (i64::from(at), String::new());
        for (low, high) in lows.iter().zip(highs) {
            let size = high - low + 1;
            let comma = if label.is_empty() { "" } else { "," };
            let _ = write!(label, "{comma}{}", low + rest % size);
            rest /= size;
        }
        let expression = format!("{}({label})", array.expression);
        let name = format!("{root}-{at}");
        let place = array.place.as_deref();
        let mut element = below(gdb, &name, &expression, place).await?;
        element.expression = label;
        elements.push(element);
    }
    Ok((elements, to < all))
}

/// Makes a variable object for a part of another one. An object that already has this name is deleted first.
async fn below(
    gdb: &Gdb,
    name: &str,
    expression: &str,
    place: Option<&str>,
) -> Result<VarObject, Failure> {
    if place.is_none() {
        return Err(strides::refusal(expression));
    }
    if gdb.get().objects.contains_key(name) {
        delete_all(gdb, name).await?;
    }
    let wanted = NewObject {
        name,
        expression,
        place,
    };
    make(gdb, wanted).await
}

/// Corrects the children that gdb has listed for a Fortran value: indices, parts without a value, pointers, objects of
/// a class, and arrays whose elements gdb would read from wrong addresses.
pub(super) async fn put_right(gdb: &Gdb, of: &FortranObject, children: &mut [VarObject]) {
    for child in children {
        let Some((root, path)) = child.name.split_once('.') else {
            continue;
        };
        let (root, path) = (root.to_owned(), path.to_owned());
        if let Layout::Copied { lows } = &of.layout {
            let depth = path.split('.').count();
            let low = lows.len().checked_sub(depth).and_then(|at| lows.get(at));
            let index = child.expression.parse::<i64>();
            if let (Some(low), Ok(index)) = (low, index) {
                child.expression = (index + low - 1).to_string();
            }
            continue;
        }
        if show_missing(child) {
            continue;
        }
        let is_pointer = is_pointer(child) || is_class(child);
        // A row of an array lies within it as gdb takes it to.
        if !is_pointer && (!is_array(child) || child.expression.parse::<i64>().is_ok()) {
            continue;
        }
        let expression = designator(&of.expression, &path);
        let place = of.place.as_deref();
        let layout = match place {
            _ if is_pointer => None,
            Some(place) => Some(layout(gdb, place, &expression, child).await),
            None => Some(Layout::Refused),
        };
        let right = match (layout, place) {
            // Without its place a pointer stays an address.
            (Some(Layout::Plain), _) | (None, None) => continue,
            (Some(Layout::Refused), _) => Err(strides::refusal(&expression)),
            _ => {
                let name = format!("{root}-{}", path.replace('.', "-"));
                below(gdb, &name, &expression, place).await
            }
        };
        match right {
            Ok(right) => {
                let label = std::mem::take(&mut child.expression);
                *child = right;
                child.expression = label;
            }
            Err(failure) => {
                child.value = value(&format!("<{}>", failure.text));
                child.children = 0;
            }
        }
    }
}

/// Sets the shown value of a part without a value, such as an array that is not allocated; false for other parts. gdb
/// shows an array without elements, and lists the components of a null pointer.
fn show_missing(child: &mut VarObject) -> bool {
    let kind = &child.type_name;
    let text = match kind.ends_with(":)") && child.value.text == "[0]" {
        true if kind.contains(", allocatable (") => "<not allocated>",
        true => "<not associated>",
        false if child.value.text == NO_TEXT => NO_TEXT,
        false if child.value.text == "0x0" && pointers::is_pointer_type(kind) => "0x0",
        false => return false,
    };
    child.value = value(text);
    child.children = 0;
    true
}

/// The designator of a part by gdb's path below an object: `a(2)%v` for `2.v` of `a`. gdb counts the last subscript
/// first.
fn designator(expression: &str, path: &str) -> String {
    let mut all = expression.to_owned();
    let mut subscripts: Vec<&str> = Vec::new();
    for part in path.split('.').chain([""]) {
        if part.parse::<i64>().is_ok() {
            subscripts.insert(0, part);
            continue;
        }
        if !subscripts.is_empty() {
            let _ = write!(all, "({})", subscripts.join(","));
            subscripts.clear();
        }
        if !part.is_empty() {
            let _ = write!(all, "%{part}");
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_of_a_copied_fortran_array_names_its_element() {
        let array = |lows: &[i64]| FortranObject {
            expression: "a".to_owned(),
            place: Some("--thread 1 ".to_owned()),
            layout: Layout::Copied {
                lows: lows.to_vec(),
            },
        };
        for (lows, name, expect) in [
            (&[1][..], "x.3", Some("a(3)")),
            (&[-1], "x.1", Some("a(-1)")),
            (&[0, 5], "x.2.3", Some("a(2,6)")),
            (&[0, 5], "x.2", None),
            (&[1], "x", None),
        ] {
            let array = array(lows);
            let element = copied_element(&array, name);
            let expect = expect.map(|text| ("--thread 1 ", text.to_owned()));
            assert_eq!(element, expect, "{name}");
        }
    }

    #[test]
    fn member_path_becomes_a_fortran_designator() {
        for (path, expect) in [
            ("v", "a%v"),
            ("2.v", "a(2)%v"),
            ("3.1.c.v", "a(1,3)%c%v"),
            ("c.-1", "a%c(-1)"),
        ] {
            assert_eq!(designator("a", path), expect, "{path}");
        }
    }
}
