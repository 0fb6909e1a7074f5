// Package wire is what Roost's daemons and commands say to each other: roost.proto, the
// Go code made from it by make generate, and the conversions between its messages and the
// vocabulary of package roost. Verbs are protobuf messages over gRPC; nouns are ClassAds
// in their text form.
package wire
