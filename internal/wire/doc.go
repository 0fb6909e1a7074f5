// Package wire has the messages between Roost's daemons and commands: roost.proto, the Go
// code that make generate makes from it, and the conversions between its messages and the
// types of package roost. Verbs are protobuf messages over gRPC; nouns are ClassAds in
// their text form.
package wire
