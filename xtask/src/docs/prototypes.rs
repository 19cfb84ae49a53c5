//! C prototypes, in fenced blocks of the language `c`: each is in the installed headers.

use super::page::{Page, Problem};
use super::sources::Sources;

/// Prototypes that no header has.
pub fn problems(page: &Page, sources: &Sources) -> Vec<Problem> {
    let mut problems = Vec::new();
    for start in (1..page.lines.len()).filter(|at| page.lines[*at] == "```c") {
        let Some(block) = page.block_after(start - 1) else { continue };
        let headers = match sources.headers() {
            Ok(headers) => headers,
            Err(error) => return vec![page.problem(start, format!("no prototype was looked up: {error:#}"))],
        };
        let text = page.lines[block].join("\n");
        let prototypes = text.split(';').map(str::trim).filter(|prototype| !prototype.is_empty());
        let unknown = prototypes.filter(|prototype| !headers.declares(prototype));
        problems.extend(unknown.map(|it| page.problem(start, format!("no installed header declares `{it}`"))));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::repository;
    use super::*;

    #[test]
    fn each_prototype_is_looked_up() {
        let page = |name: &str| {
            Page::new("docs/p.md", &format!("\n```c\nint rdma_listen(struct rdma_cm_id *id, int backlog);\nint\n  {name}(struct rdma_cm_id *id);\n```\n"))
        };
        assert_eq!(problems(&page("rdma_disconnect"), &repository()), []);
        let [problem] = &problems(&page("rdma_destroy_qp"), &repository())[..] else { panic!("void, not int") };
        assert!(problem.to_string().starts_with("docs/p.md:2: no installed header declares `int"), "{problem}");
    }
}
