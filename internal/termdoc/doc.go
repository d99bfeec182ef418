// Package termdoc shows Markdown in a terminal: headings, wrapped paragraphs, lists, code,
// quotes, and tables that fit the width or are written row by row where they cannot.
//
// Without colour, marks say what is emphasized, so that nothing is lost in a pipe.
// Characters that control a terminal are left out: a file that somebody else wrote cannot
// do more than be read.
package termdoc
