// Package cellhistory keeps checkpoints of a cell over time in a directory, and has the
// document that says what the cell was like at one of them. The command roost cell
// checkpoint writes the files, roost sim show makes the document of one, and the pages of
// the web daemon show it.
//
// A file is named after the instant of its checkpoint, so that their order is that of
// their names, and a page can link to an instant. Files appear whole or not at all.
package cellhistory
