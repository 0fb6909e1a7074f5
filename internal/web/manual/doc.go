// Package manual shows the manual pages of Roost as HTML, from the sources that man(1)
// reads, and searches them.
//
// It understands the macros of man(7) and the tables of tbl(1) that the pages of this
// project use. A macro or an escape that it does not know is an error, so that a page
// never loses text: a test converts all pages.
//
// Every heading and every option has an anchor, so that forms and errors can link to the
// place that explains them.
package manual
