// Package plan is the form in which a flow is submitted and stored: its graph, what its
// nodes run, and by which rules. A user's command compiles DAG files and submit
// descriptions into a plan. A schedd reads no such file.
//
// The jobs of nodes are compiled, too. Nodes with the same submit description share a
// template: an ad with references as "$(seed)", and the names of columns. A node has a
// value of each column for each of its tasks. So a million nodes that differ in a number
// are one ad and a million short texts.
//
// # Form
//
//	version, size   a byte, and the bytes of what follows when it is expanded
//	sections        in Zstandard: number, size, bytes
//
// Unknown sections are skipped. What is added later gets a section of its own, so the
// form of those that there are does not change.
//
// The package is pure. A plan comes from a user, so Decode checks all of it.
package plan
