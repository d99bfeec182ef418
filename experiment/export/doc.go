// Package export writes a run for other programs: tables as CSV and NDJSON for pandas and
// R ([CSV], [NDJSON]), a trace for the Perfetto and Chrome viewers ([Trace]), and spans
// for OpenTelemetry ([OTLP]).
//
// What is written follows from the run alone: the same run gives the same bytes. It is
// streamed, with memory for indices over the run, not for what is written. A run is only
// read, so several exports of one may be written at once.
//
// # Tables
//
// Rows are flat and columns keep their order. The first columns say what a row is about:
// run, condition, label, param_NAME for each parameter that varies; then, as far as it
// goes, point, repeat, null, session, reconfiguration, from, to. In NDJSON each object
// begins with a kind, "mark" for the table marks.
//
// Names that end in _ns hold whole nanoseconds, all digits of them. Those that begin with
// after_ are since the command of their reconfiguration, at its first switch; the others
// are on the axis of the marks, which begins anew when the machine boots: compare them
// within a session only. Missing values, and texts that are empty, are an empty cell in
// CSV and null in NDJSON. There is no NaN. Times of day are RFC 3339 in UTC.
//
// pandas turns columns into dates by the look of their name (*_at, *_time, and so on). No
// column here has such a name; a parameter that would make one, as dead_time, gets an
// underscore at its end: param_dead_time_. It reads whole numbers exactly as long as no
// value of the column is missing; for others say dtype="Int64".
//
// CSV is quoted as RFC 4180 has it, with lines that end in LF alone, as awk and cut want
// them. Texts are written as they are: a label that begins with "=" stays one, and is read
// by a spreadsheet as a formula. Labels come from the experiment file, and what programs
// read back must be what was measured; import CSV of others as text.
package export
