// Package proto defines the messages between a startd and its starters, and the records
// of a starter's journal. The codec is hand-written because the starter must stay small,
// and an import of protobuf alone would double its size.
//
// A message on the socket is a frame: four bytes of length, little endian, one byte for
// the type, then the fields in order. Numbers are varints; texts and lists are preceded
// by their lengths. A record in the journal is a frame with a CRC-32C of its body between
// length and body, so that a torn last record is detected and ignored. There are no
// versions: a field is only ever added at the end of a message, and a decoder reads
// missing fields as zero.
package proto
