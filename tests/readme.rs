//! The README is executed: its commands print what it says they print, and its picture is today's.

use std::path::Path;

#[test]
fn the_commands_of_the_readme_print_what_it_says() {
    trycmd::TestCases::new().case("README.md");
}

#[test]
fn the_picture_of_the_readme_is_what_is_drawn_today() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    let sweep = ["sweep", "chat-h100", "--quiet", "--out"];
    assert_cmd::Command::cargo_bin("knee").expect("built").args(sweep).arg(&out).assert().success();
    let drawn = std::fs::read(out.join("latency.png")).expect("a picture");
    let shown = std::fs::read(root.join("output/chat-h100-latency.png")).expect("the README's picture");
    assert!(drawn == shown, "copy {} to output/chat-h100-latency.png", out.join("latency.png").display());
}
