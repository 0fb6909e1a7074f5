// Package files moves files with the rights of a user.
//
// A daemon that runs as root must not open, make, rename or delete anything below a
// directory that a user can write: between a look and an act the user may put a symbolic
// link in the way. So it starts an agent, a process of its own program that has the
// user's ids and nothing else, and asks it over a socket pair; whatever the user does to
// the directory, the agent can only do what the user could have done. When the user is
// the daemon's own, the agent is a goroutine that serves the same protocol on a pipe, so
// that there is one path.
//
// Beside that an agent refuses names that lead out of the base directory
// (filepath.IsLocal), goes below the base through os.Root, and reads and writes only
// regular files and directories: no device, no fifo, no socket.
//
// Send and ReceiveEntries are the two ends of a transfer of files between daemons, as
// roost.proto's FileChunk carries it.
//
// Pack and Unpack move a whole directory as a tar, for checkpoints, in a process of the
// same kind.
package userfiles
