// Package userfiles accesses files with the rights of a user.
//
// A daemon that runs as root must not open, create, rename or delete anything below a
// directory that a user can write: between a check and an action the user may replace a
// directory by a symbolic link. So it starts an agent, a process of its own program with
// the user's ids and no other rights, and sends it requests over a socket pair; whatever
// the user does to the directory, the agent can only do what the user could do. If the
// user is the daemon's own, the agent is a goroutine that serves the same protocol on a
// pipe, so that there is one code path.
//
// In addition an agent refuses names that lead out of the base directory
// (filepath.IsLocal), uses os.Root below the base, and reads and writes only regular
// files and directories: no device, no fifo, no socket.
//
// SendEntries and ReceiveEntries are the two ends of a transfer of files between daemons,
// as messages FileChunk of roost.proto.
//
// Pack and Unpack move a whole directory as a tar, for checkpoints, in a process of the
// same kind.
package userfiles
