// Package terminal connects a terminal in a browser with a shell in a running task, as
// roost ssh does from the command line.
//
// A page asks for a ticket and opens a WebSocket with it. The ticket is good for one
// session, one task, one use and 10 seconds: a page of another site can make a browser
// open a WebSocket with its cookie, but cannot read a ticket. The shell is a call of the
// session's own login, so that the schedd decides who may enter the task.
//
//	browser ──binary: keys──────────▶ pending input, 64 KiB ──▶ Schedd.Shell
//	        ──text: size, shown─────▶
//	        ◀─binary: output──────── at most 256 KiB not shown ◀── Schedd.Shell
//	        ◀─text: taken, the end──
//
// Both directions have a window, and each side says how much it has dealt with. So a
// browser that does not read stops the program, and not the web daemon, and what is
// pasted cannot keep the browser's own reports from being read. The shell ends with the
// connection, the session, or within 5 seconds of the revocation of its login.
package terminal
