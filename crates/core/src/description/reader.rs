//! A file with the tree that its description gives back.

use crate::error::{ErrorKind, Result};
use crate::format::{Object, Reader, Region};
use crate::limits::Limits;
use crate::report::{Finding, Report};
use crate::source::Source;
use crate::tree::{Attrs, Tree};

use super::dress::found;

/// What was read, with the tree that its [description](super) gives back, if there is one.
pub fn dressed(reader: Box<dyn Reader>, limits: &Limits) -> Result<Box<dyn Reader>> {
    let mut findings = reader.findings().to_vec();
    match found(&*reader, limits) {
        Ok(None) => Ok(reader),
        Ok(Some(tree)) => Ok(Box::new(Dressed { reader, tree, findings })),
        Err(e) if e.kind() == ErrorKind::Io || e.kind() == ErrorKind::Limit => Err(e),
        Err(e) => {
            let mut report = Report::default();
            report
                .warn("core-description", format!("the description is not used: {}", e.message()));
            findings.append(&mut report.findings);
            let tree = reader.tree().clone();
            Ok(Box::new(Dressed { reader, tree, findings }))
        }
    }
}

/// A file whose tree is another than its format says.
struct Dressed {
    reader: Box<dyn Reader>,
    tree: Tree,
    findings: Vec<Finding>,
}

impl Reader for Dressed {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        self.reader.source()
    }

    fn summary(&self) -> Attrs {
        self.reader.summary()
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        self.reader.regions(each)
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        self.reader.objects(each)
    }
}
