// Package codec has the entries of an accounting feed as bytes, on disk and on the wire.
//
// An entry begins with the version of the form and the kind of the entry, a byte each.
// Its fields follow as protobuf would lay them out, so that an older Roost skips the
// fields that a newer one wrote. The number of the entry, the source and the name of its
// host are not in it: they are the same for a whole batch, or rise by 1 in it.
package codec
