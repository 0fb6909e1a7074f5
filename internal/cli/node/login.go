package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/loginfile"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// LoginCommand returns roost login: act on your jobs at another node from this machine.
func LoginCommand() *frame.Command {
	return &frame.Command{
		Name: "login", Group: frame.GroupChange, Summary: "act on your jobs at another node from this machine",
		Synopsis: "HOST:PORT TOKEN", MinOperands: 2, MaxOperands: 2, OperandName: "an address", Run: redeemToken,
		Description: "Spends a token that roost token --user has printed on the node with your jobs. From then on " +
			"this machine acts there as you, for 30 days: roost rm 12.n2 and the like find the login by the job's " +
			"id, and roost --schedd n2 submit puts jobs into n2's queue. On a machine that has no schedd the only " +
			"login is used by itself.",
		Examples: []frame.Example{
			{Line: "roost login 10.0.0.5:9705 ru1Vb…", Description: "the line that roost token --user has printed"},
			{Line: "roost --schedd n2 submit sweep.hcl", Description: "submit into the queue of n2"},
		},
	}
}

// LoginsCommand returns roost logins: list and revoke your logins from other machines.
func LoginsCommand() *frame.Command {
	return &frame.Command{
		Name: "logins", Group: frame.GroupChange, Summary: "list and revoke your logins from other machines",
		Synopsis: "[rm ID]", MaxOperands: 2, Run: listLogins,
		Description: "Lists where this machine is logged in, and which machines are logged in as you at this node, " +
			"or at the one that --schedd names. rm revokes a login by its id or the beginning of that: it is refused " +
			"from then on, and its connections are hung up on. rm with the name of a node revokes this machine's own " +
			"login there.",
		Examples: []frame.Example{
			{Line: "roost logins", Description: "who is logged in where"},
			{Line: "roost logins rm 3f9c21", Description: "revoke a login"},
			{Line: "roost logins rm n2", Description: "log this machine out at n2"},
		},
		Flags: []ucli.Flag{frame.JSONFlag()},
	}
}

// userToken prints the line with which the user can log in on another machine.
func userToken(c *frame.Invocation) error {
	if len(c.Args) > 0 {
		return frame.UsageErrorf("roost token --user takes no arguments; " +
			"see roost logins for what was made of such tokens")
	}
	life, err := roost.ParseDuration(c.StringFlag("expires"))
	if err != nil {
		return frame.UsageErrorf("--expires: %v", err)
	}
	var made *scheddapi.LoginTokenReply
	if err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		made, err = s.LoginToken(ctx, &scheddapi.LoginTokenRequest{Life: int64(life)})
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "Run this on the other machine before %s. It is good once, and whoever has it can act "+
		"as you here.\n\n", document.TimeOfNanos(made.GetExpires()).Format("Mon 15:04"))
	_, err = fmt.Fprintf(c.Stdout, "roost login %s %s\n", made.GetAddress(), made.GetToken())
	return err
}

// redeemToken spends a token.
func redeemToken(c *frame.Invocation) error {
	token, err := login.ParseToken(c.Args[1])
	if err != nil {
		return err
	}
	dir, err := loginfile.Dir(c.Getenv)
	if err != nil {
		return err
	}
	greeting, err := login.NewRequest(token)
	if err != nil {
		return err
	}
	request, err := greeting.CertRequest()
	if err != nil {
		return err
	}
	conn, err := rpc.Dial(c.Args[0], greeting.Identity, peer.Schedd)
	if err != nil {
		return err
	}
	defer conn.Close()
	var reply *scheddapi.LoginReply
	// the answer may be lost: the same key gets the same certificate
	if err := c.Retry(frame.AskTimeout, func(ctx context.Context, _ func()) (err error) {
		ctx, cancel := context.WithTimeout(ctx, frame.AskTimeout)
		defer cancel()
		reply, err = scheddapi.NewScheddClient(rpc.CommandConn{ClientConn: conn}).Login(ctx,
			&scheddapi.LoginRequest{Secret: token.Secret[:], Request: request})
		return err
	}); err != nil {
		return err
	}
	e, err := greeting.Entry(c.Context, reply.GetNode(), c.Args[0], reply.GetUser(), reply.GetCertificate())
	if err != nil {
		return err
	}
	if err := e.Save(dir); err != nil {
		return err
	}
	fmt.Fprintf(c.Stdout, "You are %s at %s until %s.\n", document.PrintableText(e.User), e.Node,
		e.Expires().Format(time.DateOnly))
	fmt.Fprintf(c.Stderr, "roost rm 12.%s and the like act there by themselves; submit with: roost --schedd "+
		"%s submit FILE, or qsub -q @%s\n", e.Node, e.Node, e.Node)
	return nil
}

// loginRecord is a login for programs.
type loginRecord struct {
	ID      string `json:"id"`
	User    string `json:"user"`
	From    string `json:"from"`
	Made    string `json:"made"`
	Expires string `json:"expires"`
	Revoked string `json:"revoked,omitempty"`
}

// entryRecord is one of this machine's for programs.
type entryRecord struct {
	Node    string    `json:"node"`
	User    string    `json:"user"`
	Address string    `json:"address"`
	Expires time.Time `json:"expires"`
}

func listLogins(c *frame.Invocation) error {
	switch {
	case len(c.Args) == 2 && c.Args[0] == "rm":
		return revokeLogin(c, c.Args[1])
	case len(c.Args) > 0:
		return frame.UsageErrorf("write it as roost logins, or roost logins rm ID")
	}
	var own []entryRecord
	if dir, err := loginfile.Dir(c.Getenv); err == nil {
		for _, node := range loginfile.Nodes(dir) {
			if e, err := login.Load(dir, node); err == nil {
				own = append(own, entryRecord{e.Node, e.User, e.Address, e.Expires()})
			} else {
				fmt.Fprintln(c.Stderr, frame.ErrorText(err))
			}
		}
	}
	var there *scheddapi.LoginsReply
	err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		there, err = s.Logins(ctx, &scheddapi.LoginsRequest{})
		return err
	})
	if err != nil && len(own) == 0 {
		return err
	}
	if c.WantsJSON() {
		given := make([]loginRecord, 0, len(there.GetLogins()))
		for _, l := range there.GetLogins() {
			given = append(given, loginRecord{l.GetId(), l.GetUser(), l.GetFrom(), document.Timestamp(l.GetMade()),
				document.Timestamp(l.GetExpires()), document.Timestamp(l.GetRevoked())})
		}
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"here": append([]entryRecord{}, own...),
			"node":   there.GetNode(),
			"logins": given})
	}
	loginTables(c, own, there)
	if err != nil {
		fmt.Fprintf(c.Stderr, "who is logged in here cannot be told: %s\n", frame.ErrorText(err))
	}
	return nil
}

func loginTables(c *frame.Invocation, own []entryRecord, there *scheddapi.LoginsReply) {
	if len(own) > 0 {
		t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "LOGGED IN AT"}, {Head: "AS"}, {Head: "ADDRESS"},
			{Head: "EXPIRES"}}}
		for _, e := range own {
			t.AddRow(frame.TableCell{Text: e.Node}, frame.TableCell{Text: document.PrintableText(e.User)},
				frame.TableCell{Text: e.Address},
				frame.TableCell{Text: admin.UntilText(c, e.Expires)})
		}
		t.Print(c.Stdout, c.OutScreen)
	}
	if len(there.GetLogins()) == 0 {
		if len(own) == 0 {
			fmt.Fprintln(c.Stderr,
				"nobody is logged in as you, and you are logged in nowhere; begin with: roost token --user")
		}
		return
	}
	if len(own) > 0 {
		fmt.Fprintln(c.Stdout)
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "LOGIN"}, {Head: "AT"}, {Head: "USER"}, {Head: "FROM"},
		{Head: "MADE", DropPriority: 1}, {Head: "EXPIRES"}, {Head: "STATE"}}}
	for _, l := range there.GetLogins() {
		state := "holds"
		switch {
		case l.GetRevoked() != 0:
			state = "revoked"
		case l.GetExpires() < c.Now().UnixNano():
			state = "expired"
		case l.GetOwn():
			state = "this one"
		}
		t.AddRow(frame.TableCell{Text: l.GetId()}, frame.TableCell{Text: there.GetNode()},
			frame.TableCell{Text: document.PrintableText(l.GetUser())},
			frame.TableCell{Text: document.PrintableText(l.GetFrom())}, frame.TableCell{Text: c.AgoText(l.GetMade())},
			frame.TableCell{Text: admin.UntilText(c, document.TimeOfNanos(l.GetExpires()))},
			frame.TableCell{Text: state})
	}
	t.Print(c.Stdout, c.OutScreen)
}

// revokeLogin revokes a login, by its id; or by the name of a node this machine's there.
func revokeLogin(c *frame.Invocation, which string) error {
	e, err := nodeaccess.LoginAt(c, which)
	if err != nil {
		return err
	}
	id := which
	if e != nil {
		c.ScheddNode, id = e.Node, ""
	}
	var gone *scheddapi.LoginInfo
	err = c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		gone, err = s.Logout(ctx, &scheddapi.LogoutRequest{Id: id})
		return err
	})
	if e != nil && (err == nil || errors.Is(err, roost.Unauthenticated)) { // it did not hold any more
		dir, derr := loginfile.Dir(c.Getenv)
		if derr == nil {
			derr = login.Forget(dir, e.Node)
		}
		if derr != nil && !errors.Is(derr, os.ErrNotExist) {
			return derr
		}
		fmt.Fprintf(c.Stdout, "This machine is logged out at %s.\n", e.Node)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Stdout, "Login %s of %s from %s is revoked.\n", gone.GetId(), document.PrintableText(gone.GetUser()),
		document.PrintableText(gone.GetFrom()))
	return nil
}
