// Package streams carries files, output and terminals to and from the tasks of a machine.
//
// Server answers all calls of the startd's service but Session: input and output files,
// images of checkpoints, output that is followed, and shells in tasks, of which one is
// the terminal of an interactive job. It also listens for tasks that want something run
// on other machines of their job.
//
//	schedd ──Put, PutImage──────────▶ Server ──▶ the attempt's directories
//	       ◀─Fetch, FetchImage, Tail─        ◀──
//	       ──Shell, Reach───────────▶        ──▶ processes of the task
//
// A call finds its attempt by the startd's loop (Loop), and has the attempt's files stay
// until it ends. What a user may change is followed with that user's rights and no more.
package streams
