// Package dag reads DAG files, in which HTCondor's DAGMan describes flows: nodes that run
// jobs, and the order in which they run.
//
//	files ──▶ lines ──▶ words ──▶ commands ──▶ Flow (graph, settings, scripts, variables)
//	                                 │
//	                                 └──▶ diagnostics: all of them, with file, line and remedy
//
// A file is read twice. The first pass defines nodes and splices, and the second one does
// everything else, so commands may come in any order. Of two commands for one property of
// a node the later one counts. A splice is read as a whole where the first pass meets it,
// and its nodes are called SPLICE+NODE.
//
// The language is that of condor_submit_dag(1) and of the chapter on workflows in
// HTCondor's manual. The commands are read as DAGMan 25 reads them. Where this package
// refuses more than DAGMan does, the diagnostic says so.
//
// The package is pure: files are read only through [FileReader].
package dag
