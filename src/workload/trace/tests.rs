//! Tests of the trace readers.

use super::*;

fn sends_ms(trace: &Trace) -> Vec<u64> {
    trace.requests.iter().map(|r| r.send.as_nanos() / 1_000_000).collect()
}

#[test]
fn our_csv_keeps_classes_and_starts_at_zero() {
    let text = "arrival_s,input_tokens,output_tokens,class,session\n\
                10.0,100,20,chat,a\n10.5,200,30,code,b\n12,300,40,chat,a\n";
    let trace = parse("t.csv", text).unwrap();
    assert_eq!(trace.format, TraceFormat::Knee);
    assert_eq!(trace.class_names, ["chat", "code"]);
    assert_eq!(sends_ms(&trace), [0, 500, 2000]);
    let classes: Vec<u16> = trace.requests.iter().map(|r| r.class).collect();
    assert_eq!(classes, [0, 1, 0]);
    assert_eq!(trace.requests[2].index, 2);
    assert!(trace.notes.is_empty());
}

#[test]
fn rows_out_of_order_and_empty_requests_are_said() {
    let text = "arrival_s,input_tokens,output_tokens\n2,5,1\n1,0,3\n1,7,0\n";
    let trace = parse("t.csv", text).unwrap();
    assert_eq!(sends_ms(&trace), [0, 0, 1000]);
    let inputs: Vec<_> = trace.requests.iter().map(|r| (r.input_tokens, r.output_tokens)).collect();
    assert_eq!(inputs, [(1, 3), (7, 1), (5, 1)]);
    assert_eq!(
        trace.notes,
        [
            "t.csv: 1 rows came before the row above them; sorted by arrival",
            "t.csv: 2 requests without input or output tokens are replayed with 1 token",
        ]
    );
}

#[test]
fn azure_timestamps_become_seconds_from_the_first() {
    let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
                2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n";
    let trace = parse("a.csv", text).unwrap();
    assert_eq!(trace.format, TraceFormat::Azure);
    assert_eq!(trace.requests[1].send.as_nanos(), 4_314_579_000);
}

#[test]
fn mooncake_buckets_are_spread_up_to_the_next_timestamp() {
    let line = |t: u32| format!("{{\"timestamp\": {t}, \"input_length\": 9, \"output_length\": 2}}\n");
    let text: String = [0, 0, 3000, 3000, 3000, 9000, 12000, 15000].map(line).concat();
    let trace = parse("m.jsonl", &text).unwrap();
    assert_eq!(trace.format, TraceFormat::Mooncake);
    // The bucket at 3 s is followed by an empty one: it does not spread into it.
    assert_eq!(sends_ms(&trace), [0, 1500, 3000, 4000, 5000, 9000, 12_000, 15_000]);
    assert_eq!(trace.notes.len(), 1);
}

#[test]
fn errors_name_file_line_column_found_and_expected() {
    let cases = [
        (
            "arrival_s,input_tokens,output_tokens\n0,5,1\n1,many,3\n",
            "t, line 3, column `input_tokens`: found `many`, expected a whole number of tokens, at most 4294967295",
        ),
        (
            "arrival_s,input_tokens,output_tokens\n-1,5,1\n",
            "t, line 2, column `arrival_s`: found `-1`, expected a number from 0 to 1e12",
        ),
        (
            "arrival_s,input_tokens,output_tokens\n1e300,5,1\n",
            "t, line 2, column `arrival_s`: found `1e300`, expected a number from 0 to 1e12",
        ),
        (
            "{\"timestamp\": 1e300, \"input_length\": 1, \"output_length\": 1}\n",
            "t, line 1, column `timestamp`: found `1e300`, expected milliseconds from 0 to 1.8e13",
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n1000-01-01 00:00:00,1,1\n2024-01-01 00:00:00,1,1\n",
            "t: found arrivals that lie centuries apart, expected all within the clock's 584 years",
        ),
        (
            "arrival_s,input_tokens,output_tokens\n0,5\n",
            "t, line 2: found 2 columns, expected 3, as in the header",
        ),
        (
            "arrival_s,input_tokens\n0,5\n",
            "t: found the header `arrival_s,input_tokens`, expected a column `output_tokens`",
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,5,1\n",
            "t, line 2, column `TIMESTAMP`: found `yesterday`, \
             expected a UTC time such as `2023-11-16 18:15:46.6805900`",
        ),
        ("arrival_s,input_tokens,output_tokens\n", "t: found the end of the file, expected at least one row"),
    ];
    for (text, message) in cases {
        assert_eq!(parse("t", text).unwrap_err().to_string(), message);
    }
    let error = parse("t", "{\"timestamp\": 0}\n").unwrap_err().to_string();
    assert!(error.starts_with("t, line 1: found `{\"timestamp\": 0}`, expected an object"), "{error}");
    assert!(parse("t", "").unwrap_err().to_string().contains("found nothing, expected a header"));
}
