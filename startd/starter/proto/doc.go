// Package proto is what a startd and its starters say to each other, and what a starter
// writes into its journal: a few messages in a codec made by hand, because the starter
// must stay tiny and an import of protobuf alone would double its size.
//
// A message on the socket is a frame: four bytes of length, little endian, then one byte
// that says which message it is, then its fields in order. Numbers are varints, texts and
// lists carry their length before them. A record in the journal is a frame with a CRC-32C
// of its body between length and body, so that a torn last record is seen and left out.
// There are no versions: a field is only ever added at the end of a message, and a
// decoder takes what is missing there as zero.
package proto
