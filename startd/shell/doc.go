// Package shell runs a command inside a running task. The command gets the task's
// namespaces, cgroups and working directory, its owner's rights, its environment and its
// limits. It runs on a terminal of its own or on pipes.
//
// A Go program cannot enter a user namespace, as it has several threads (setns(2)). And
// what runs between root's rights and the user's must not depend on anything that the
// user can write. So the way in has two steps, and both are this program again, run as
// "roost shell-agent":
//
//	Start ── fork ──▶ agent "join"   root, outside: waits until Start has moved it into the
//	                     │           cgroups, sets the user's groups, and executes nsenter(1),
//	                     │           which enters the namespaces that differ from ours
//	                     ▼
//	                  agent "become" root of the namespaces, inside: sets limits, capabilities,
//	                     │           gid, uid, working directory and no_new_privs, and verifies
//	                     │           them
//	                     ▼
//	                  the user's command
//
// No process with root's rights has user data in its environment or arguments: the
// request is in a sealed memory file, and the task's environment in it is used only for
// the last exec. Start opens the descriptors of namespaces and directories before. It
// verifies that the process belongs to the task and is alive after all are open; so a
// reused pid cannot replace the task.
package shell
