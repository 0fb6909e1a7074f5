// Package eventlog has the events and records of jobs as they are on disk. It is pure.
//
// The journal of a schedd holds two kinds of message, laid out as protobuf would do it,
// so that an older Roost skips the fields that a newer one wrote:
//
//	JobEvent      a fact about one job; AppendEvent and DecodeEvent
//	JobSnapshot   all that the queue knows of one job; Append and DecodeSnapshot
//
// A snapshot contains a TaskRecord for each task of which more is known than its state.
// TaskRecords stores them in memory, in a form as compact as the one on disk: a million
// tasks that succeeded, or were held together, do not need a million records.
//
// The numbers of fields, events, causes and types of dependency are used for nothing else
// once they were in a release. What an event does to a job is in package queue.
package eventlog
