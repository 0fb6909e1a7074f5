// Package sacct prints attempts as sacct of Slurm prints jobs: the fields, their widths,
// the table, the lines for programs, and the JSON document. It is pure.
//
// A row is one attempt. Slurm has a row for each step, too, and puts use of memory there;
// Roost has no steps, so that the row of the attempt has it. A job that ran several times
// has a row for each time, as sacct --duplicates prints.
package sacct
