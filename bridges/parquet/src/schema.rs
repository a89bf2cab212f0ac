//! The schema: leaf columns with their paths. Structures become groups; lists and maps are not supported.

use crate::thrift::Struct;

/// A leaf column, or a group that cannot be read.
pub(crate) struct Field<'a> {
    /// Names from the root, separated by slashes.
    pub(crate) path: String,
    pub(crate) schema: &'a Struct,
    /// Number of its first leaf.
    pub(crate) leaf: usize,
    /// Definition level of rows with a value: number of optional elements of the path.
    pub(crate) levels: u32,
    /// Why it cannot be read.
    pub(crate) problem: Option<&'static str>,
}

/// A group around the current element.
struct Group {
    /// Number of children that are still to come.
    children: u64,
    path: String,
    levels: u32,
    /// Whether the group was reported.
    reported: bool,
}

/// The leaf columns of a schema, whose elements are in depth-first order.
pub(crate) fn fields<'a>(schema: &[&'a Struct]) -> Vec<Field<'a>> {
    let mut fields = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut leaf = 0;
    for schema in schema.iter().skip(1).copied() {
        while groups.last().is_some_and(|group| group.children == 0) {
            groups.pop();
        }
        let name = schema.text(4).unwrap_or_default();
        let (mut path, mut levels, mut reported) = (name, 0, false);
        if let Some(group) = groups.last_mut() {
            group.children -= 1;
            (levels, reported) = (group.levels, group.reported);
            // Paths of reported groups are not needed.
            if !reported {
                path = format!("{}/{path}", group.path);
            }
        }
        levels += u32::from(schema.int(3) == Some(1));
        let children = schema.size(5).unwrap_or(0);
        let logical = schema.inner(10).and_then(|union| union.0.first()).map(|(id, _)| *id);
        let problem = match (logical, schema.int(6)) {
            _ if schema.int(3) == Some(2) => Some("repeated columns are not supported"),
            _ if children == 0 => None,
            (Some(2), _) | (_, Some(1 | 2)) => Some("columns of maps are not supported"),
            (Some(3), _) | (_, Some(3)) => Some("columns of lists are not supported"),
            (Some(16), _) => Some("columns of variants are not supported"),
            _ => None,
        };
        if !reported && (problem.is_some() || children == 0) {
            fields.push(Field { path: path.clone(), schema, leaf, levels, problem });
        }
        if children > 0 {
            let reported = reported || problem.is_some();
            groups.push(Group { children, path, levels, reported });
        } else {
            leaf += 1;
        }
    }
    fields
}
