use super::*;

#[test]
fn scratch_load_all() {
    for dir in ["/tmp/bmjson", "/tmp/stf", "/work/wt/interp/p4/build"] {
        let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
        names.sort();
        for path in names.iter().filter(|p| p.extension().is_some_and(|e| e == "json")) {
            match load(&std::fs::read(path).unwrap()) {
                Ok(p) => println!("ok {} code {} wide {} slots {}", path.display(), p.code.len(), p.wide.len(), p.layout.initial.len()),
                Err(e) => println!("ERR {}: {e}", path.display()),
            }
        }
    }
}
