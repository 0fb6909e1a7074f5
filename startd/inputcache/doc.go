// Package inputcache has the input files of a machine that several attempts of a user
// need. Such a file travels to the machine once, and attempts after the first take it
// from here.
//
//	DIR/HEX.input      a file, in the form of a stored set (package userfiles)
//	DIR/incoming-HEX   one that is on its way
//
// A file is known by its submit node, its user there and the SHA-256 of its transfer, so
// that nobody learns which files others have here, and by nothing that a user can change:
// the directory is the startd's. The contents are compared with the SHA-256 each time
// they are read.
//
// Files make room for others, used longest ago first. Nothing is lost with them: the
// submit node sends again what is missing.
package inputcache
