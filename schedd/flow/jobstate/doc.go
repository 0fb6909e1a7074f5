// Package jobstate makes the lines of a jobstate log: the history of a flow that workflow
// engines such as Pegasus read (HTCondor's manual, Machine-Readable Event History).
//
//	1292620511 INTERNAL *** DAGMAN_STARTED 4972.0 ***
//	1292620525 NodeA SUBMIT 4973.0 local - 1
//	1292620526 NodeA JOB_SUCCESS 0 local - 1
//	1292620535 INTERNAL *** DAGMAN_FINISHED 0 ***
//
// The lines follow from the events of the queue alone, in their order. So a queue that
// is made from its log has the same lines as before. A Log retains those of which it is
// not known that they are in the file; after a restart Missing compares them with the
// end of the file. So each line comes into the file once.
package jobstate
