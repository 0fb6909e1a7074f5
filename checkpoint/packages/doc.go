// Package packages has the names of the packages and container images that are on a
// checkpoint server.
//
// NAME@VERSION names one blob for ever: a version that was made is never made again with
// other contents, not even after it was removed. NAME@LABEL names a version, and moves. A
// version begins with a digit and a label with a letter, so nobody has to ask which of
// them a text is. Each move of a label is in the history of its name.
//
// A name belongs to the user who used it first, of one submit node. The blobs of its
// versions are pinned. Who the user is, is the caller's decision.
//
//	DIR/NAME.json    all of one name, as JSON with a version and a checksum
package packages
