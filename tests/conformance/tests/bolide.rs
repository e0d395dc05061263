//! The sections, against `bolide serve` or the server that the environment names.

use bolide_conformance::{Target, check, rfc9110, rfc9112};

/// One test for each section, so that a failure names it.
macro_rules! sections {
    ($($test:ident: $cases:expr;)*) => {
        $(
            #[test]
            fn $test() {
                check(&Target::from_environment(), &$cases);
            }
        )*
    };
}

sections! {
    rfc9110_6_6_what_a_response_says: rfc9110::section_6_6::cases();
    rfc9110_9_3_methods: rfc9110::section_9_3::cases();
    rfc9110_10_1_expect: rfc9110::section_10_1::cases();
    rfc9112_2_2_message_parsing: rfc9112::section_2_2::cases();
    rfc9112_2_3_version: rfc9112::section_2_3::cases();
    rfc9112_3_request_line: rfc9112::section_3::cases();
    rfc9112_3_2_request_target: rfc9112::section_3_2::cases();
    rfc9112_5_field_lines: rfc9112::section_5::cases();
    rfc9112_6_1_transfer_encoding: rfc9112::section_6_1::cases();
    rfc9112_6_2_content_length: rfc9112::section_6_2::cases();
    rfc9112_7_1_chunked: rfc9112::section_7_1::cases();
    rfc9112_9_connections: rfc9112::section_9::cases();
}

/// The same for the sections about files.
macro_rules! sections_of_files {
    ($($test:ident: $cases:expr;)*) => {
        $(
            #[test]
            fn $test() {
                if let Some(target) = Target::of_files_from_environment(stringify!($test)) {
                    check(&target, &$cases);
                }
            }
        )*
    };
}

sections_of_files! {
    rfc9110_13_conditional_requests: rfc9110::section_13::cases();
    rfc9110_14_range_requests: rfc9110::section_14::cases();
    rfc9110_17_3_file_and_path_names: rfc9110::section_17_3::cases();
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let all = [rfc9110::all(), rfc9110::of_files(), rfc9112::all()].concat();
    let mut names: Vec<&str> = all.iter().map(|case| case.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count > 150, "{count}");
}
