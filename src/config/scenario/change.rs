//! Changes of single values: `backend.app.balance=roundrobin`, `server.0.service=20ms`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A change, as a document of its own with one key.
#[derive(Debug)]
pub(super) struct Change {
    key: String,
    document: String,
}

const VALUE: &str = "value";

/// Reads changes. A value that is no TOML is taken for a text.
///
/// # Errors
/// What is no change.
pub(super) fn documents(changes: &[String]) -> Result<Vec<Change>, String> {
    changes
        .iter()
        .map(|change| {
            let (key, value) = change
                .split_once('=')
                .ok_or_else(|| format!("--set {change}: expected KEY=VALUE"))?;
            let plain = format!("{VALUE} = {value}");
            let document = match DeTable::parse(&plain) {
                Ok(_) => plain,
                Err(_) => format!("{VALUE} = {}", toml::Value::String(value.to_owned())),
            };
            Ok(Change {
                key: key.trim().to_owned(),
                document,
            })
        })
        .collect()
}

/// Makes the changes that have a place in this tree; gives those that have none.
pub(super) fn apply<'a>(tree: &mut Spanned<DeTable<'a>>, changes: &'a [Change]) -> Vec<&'a Change> {
    changes.iter().filter(|change| !change.put(tree)).collect()
}

impl Change {
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Puts its value into a tree that has a place for it: a table that is there, with that key or without.
    pub(super) fn put<'a>(&'a self, tree: &mut Spanned<DeTable<'a>>) -> bool {
        let mut parts: Vec<&str> = self.key.split('.').collect();
        let Some(last) = parts.pop() else {
            return false;
        };
        let Some(table) = table_at(tree.get_mut(), &parts) else {
            return false;
        };
        let Ok(document) = DeTable::parse(&self.document) else {
            return false;
        };
        let Some((name, value)) = document.into_inner().into_iter().next() else {
            return false;
        };
        let known = table.keys().find(|known| *known.get_ref() == last).cloned();
        let name = known.unwrap_or_else(|| Spanned::new(name.span(), last.into()));
        table.remove(&name);
        table.insert(name, value);
        true
    }
}

/// The table at a path; a number is a place in a list.
fn table_at<'t, 'a>(table: &'t mut DeTable<'a>, path: &[&str]) -> Option<&'t mut DeTable<'a>> {
    let Some((first, rest)) = path.split_first() else {
        return Some(table);
    };
    let (_, value) = table.iter_mut().find(|(name, _)| *name.get_ref() == *first)?;
    match value.get_mut() {
        DeValue::Table(inner) => table_at(inner, rest),
        DeValue::Array(list) => {
            let (at, rest) = rest.split_first()?;
            let at: usize = at.parse().ok()?;
            match list.get_mut(at).map(Spanned::get_mut) {
                Some(DeValue::Table(inner)) => table_at(inner, rest),
                _ => None,
            }
        }
        _ => None,
    }
}
