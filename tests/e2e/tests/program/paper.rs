//! Completions and manual pages, as the tools that read them see them.

use bolide_launcher::{find, program, run, scratch};

#[test]
fn shells_read_the_completions() {
    let directory = scratch("shells_read_the_completions");
    for shell in ["bash", "zsh", "fish"] {
        let script = run(program(), ["completions", shell]).well().text();
        assert!(script.contains("serve") && script.contains("access-log"), "{shell}: {script}");
        let Some(tool) = find(shell, "shells_read_the_completions") else { continue };
        let path = directory.join(format!("bolide.{shell}"));
        std::fs::write(&path, script).unwrap();
        run(&tool, ["-n", &path.display().to_string()]).well();
    }
}

#[test]
fn bash_completes_a_command_and_an_option() {
    let test = "bash_completes_a_command_and_an_option";
    let Some(bash) = find("bash", test) else { return };
    let path = scratch(test).join("bolide.bash");
    std::fs::write(&path, run(program(), ["completions", "bash"]).well().text()).unwrap();
    let asks = |words: &str, last: usize| {
        let script = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD={last}; _bolide bolide \"${{COMP_WORDS[{last}]}}\" \
             \"${{COMP_WORDS[{last}-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\"",
            path.display()
        );
        run(&bash, ["--norc", "-c", &script]).well().text().trim().to_owned()
    };
    assert_eq!(asks("bolide comp", 1), "completions");
    assert_eq!(asks("bolide serve --access-log-f", 2), "--access-log-format");
    assert_eq!(asks("bolide serve --log-format js", 3), "json");
}

#[test]
fn the_manual_pages_render() {
    let test = "the_manual_pages_render";
    let directory = scratch(test);
    let none = run(program(), ["man", "/none"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(
        none.both().contains("/none: directory doesn't exist (create it first)"),
        "{}",
        none.both()
    );
    run(program(), ["man", &directory.display().to_string()]).well();
    let printed = run(program(), ["man"]).well().text();
    assert_eq!(printed, std::fs::read_to_string(directory.join("bolide.1")).unwrap());
    let Some(groff) = find("groff", test) else { return };
    let mut pages = 0;
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let rendered =
            run(&groff, ["-man", "-Tutf8", "-ww", "-P-cbou", &path.display().to_string()]).well();
        assert!(rendered.text().contains("SYNOPSIS"), "{}", path.display());
        pages += 1;
    }
    assert!(pages > 8, "{pages} pages");
    let serve = directory.join("bolide-serve.1").display().to_string();
    let text = run(&groff, ["-man", "-Tascii", "-P-cbou", &serve]).well().text();
    for words in ["--access-log", "--print-config", "Examples:"] {
        assert!(text.contains(words), "{words} is missing: {text}");
    }
}
