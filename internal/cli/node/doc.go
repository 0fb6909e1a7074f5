// Package node holds the commands that make a machine a node and take it out of its pool:
// init, join, leave, revoke, install, token, login, pki, up and master.
//
// They run as root, or below another root directory to try them out. What they do to the
// machine is in internal/enroll and internal/master. Tokens are made and revoked on the
// machine with the pool's authority, over its unix socket.
package node
