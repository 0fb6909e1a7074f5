// Package document has the JSON documents of roost-json(7), and the words in which jobs
// and nodes are described. Commands and the HTTP API encode the same types, so that a
// program reads one form wherever it asks.
package document

// Version is the version of all documents. Members are only added. It would rise if one
// had to change its meaning.
const Version = 1
