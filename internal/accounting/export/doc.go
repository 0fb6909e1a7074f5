// Package export writes what accounting recorded in the formats that other programs read:
// the accounting log of PBS, the tables of the Borg traces of 2019, the Standard Workload
// Format, CSV and JSON Lines. What XDMoD reads of Slurm is in package sacct.
//
// Every export reads its records once and writes as it reads, so that its memory does not
// grow with the number of records. The records come from iterators of
// [accounting.Reader]; where a format needs two of them, they are merged by their order.
// It is pure.
package export
