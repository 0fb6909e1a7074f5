package terminal

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// Subprotocols of the WebSocket. The ticket travels as one, because browsers let a page
// set no other header, and addresses are written to logs.
const (
	subprotocol  = "roost-terminal"
	ticketPrefix = "roost-ticket."
)

// Server opens terminals.
type Server struct{ tickets *ticketStore }

// New returns a server of terminals without tickets.
func New() *Server { return &Server{newTicketStore()} }

// Ticket permits to open one terminal.
type Ticket struct {
	Version int    `json:"v"`
	Ticket  string `json:"ticket"`
	Expires string `json:"expires"`
}

// Issue answers with a ticket for the task in the path.
func (v *Server) Issue(c *route.Call) error {
	task, err := view.TaskID(c)
	if err != nil {
		return err
	}
	secret, expires, err := v.tickets.issue(c.Session, task)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusCreated, Ticket{document.Version, secret, expires.UTC().Format(time.RFC3339Nano)})
}

// Serve is the WebSocket of a terminal, until the shell, the connection or the session
// ends.
func (v *Server) Serve(c *route.Call) error {
	task, err := view.TaskID(c)
	if err != nil {
		return err
	}
	if !strings.EqualFold(c.Request.Header.Get("Upgrade"), "websocket") {
		c.Writer.Header().Set("Upgrade", "websocket")
		return route.NewProblem(http.StatusUpgradeRequired, "this address is for the WebSocket of a terminal",
			"open the page /tasks/"+task+"/terminal, or run: roost ssh "+task)
	}
	if p := c.CheckWebSocketOrigin(); p != nil {
		return p
	}
	if !v.tickets.take(offeredTicket(c.Request), c.Session, task) {
		return route.NewProblem(http.StatusForbidden, "the ticket is not for this task and session, or it was used "+
			"or is older than 10 seconds", "load the page of the terminal again")
	}
	first := &wire.ShellInput{Task: task, Terminal: true, Term: "xterm-256color"}
	for name, to := range map[string]*uint32{"rows": &first.Rows, "columns": &first.Columns} {
		if *to, err = sizeOf(name, c.QueryValue(name)); err != nil {
			return err
		}
	}
	conn, err := websocket.Accept(c.Writer, c.Request, &websocket.AcceptOptions{Subprotocols: []string{subprotocol}})
	if err != nil { // it has answered
		return nil
	}
	defer conn.CloseNow()
	began := time.Now()
	c.Audit("terminal opened", "task", task)
	err = newRelay(c.Session, conn).run(c.Context(), first)
	c.Audit("terminal ended", "task", task, "seconds", int(time.Since(began).Seconds()))
	return err
}

// offeredTicket finds the ticket in a handshake.
func offeredTicket(r *http.Request) string {
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for word := range strings.SplitSeq(line, ",") {
			if secret, ok := strings.CutPrefix(strings.TrimSpace(word), ticketPrefix); ok {
				return secret
			}
		}
	}
	return ""
}

// maxSize bounds the rows and columns of a window.
const maxSize = 1000

// sizeOf reads a number of rows or columns; empty: it is not known.
func sizeOf(name, text string) (uint32, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 1 || n > maxSize {
		return 0, fmt.Errorf("%s: %w: it is a number from 1 to %d", name, roost.Invalid, maxSize)
	}
	return uint32(n), nil
}
