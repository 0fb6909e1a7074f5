package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

func loginCommand() *command {
	return &command{
		name: "login", group: groupChange, summary: "act on your jobs at another node from this machine",
		synopsis: "HOST:PORT TOKEN", minOperands: 2, maxOperands: 2, operandName: "an address", run: redeemToken,
		description: "Spends a token that roost token --user has printed on the node with your jobs. From then on " +
			"this machine acts there as you, for 30 days: roost rm 12.n2 and the like find the login by the job's " +
			"id, and roost --schedd n2 submit puts jobs into n2's queue. On a machine that has no schedd the only " +
			"login is used by itself.",
		examples: []commandExample{
			{"roost login 10.0.0.5:9705 ru1Vb…", "the line that roost token --user has printed"},
			{"roost --schedd n2 submit sweep.hcl", "submit into the queue of n2"},
		},
	}
}

func loginsCommand() *command {
	return &command{
		name: "logins", group: groupChange, summary: "list and revoke your logins from other machines",
		synopsis: "[rm ID]", maxOperands: 2, run: listLogins,
		description: "Lists where this machine is logged in, and which machines are logged in as you at this node, " +
			"or at the one that --schedd names. rm revokes a login by its id or the beginning of that: it is refused " +
			"from then on, and its connections are hung up on. rm with the name of a node revokes this machine's own " +
			"login there.",
		examples: []commandExample{
			{"roost logins", "who is logged in where"},
			{"roost logins rm 3f9c21", "revoke a login"},
			{"roost logins rm n2", "log this machine out at n2"},
		},
		flags: []ucli.Flag{jsonFlag()},
	}
}

// userToken prints the line with which the user can log in on another machine.
func (c *invocation) userToken() error {
	if len(c.args) > 0 {
		return usageErrorf("roost token --user takes no arguments; see roost logins for what was made of such tokens")
	}
	life, err := roost.ParseDuration(c.stringFlag("expires"))
	if err != nil {
		return usageErrorf("--expires: %v", err)
	}
	var made *wire.LoginTokenReply
	if err := c.callSchedd(askTimeout, func(ctx context.Context, s wire.ScheddClient) (err error) {
		made, err = s.LoginToken(ctx, &wire.LoginTokenRequest{Life: int64(life)})
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "Run this on the other machine before %s. It is good once, and whoever has it can act "+
		"as you here.\n\n", timeOfNanos(made.GetExpires()).Format("Mon 15:04"))
	_, err = fmt.Fprintf(c.stdout, "roost login %s %s\n", made.GetAddress(), made.GetToken())
	return err
}

// redeemToken spends a token.
func redeemToken(c *invocation) error {
	token, err := login.ParseToken(c.args[1])
	if err != nil {
		return err
	}
	dir, err := login.Dir(c.getenv)
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
	conn, err := rpc.Dial(c.args[0], greeting.Identity, peer.Schedd)
	if err != nil {
		return err
	}
	defer conn.Close()
	var reply *wire.LoginReply
	// the answer may be lost: the same key gets the same certificate
	if err := c.retry(askTimeout, func(ctx context.Context, _ func()) (err error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		reply, err = wire.NewScheddClient(conn).Login(ctx,
			&wire.LoginRequest{Secret: token.Secret[:], Request: request})
		return err
	}); err != nil {
		return err
	}
	e, err := greeting.Entry(c.ctx, reply.GetNode(), c.args[0], reply.GetUser(), reply.GetCertificate())
	if err != nil {
		return err
	}
	if err := e.Save(dir); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "You are %s at %s until %s.\n", printableText(e.User), e.Node,
		e.Expires().Format(time.DateOnly))
	fmt.Fprintf(c.stderr, "roost rm 12.%s and the like act there by themselves; submit with: roost --schedd "+
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

func listLogins(c *invocation) error {
	switch {
	case len(c.args) == 2 && c.args[0] == "rm":
		return c.revokeLogin(c.args[1])
	case len(c.args) > 0:
		return usageErrorf("write it as roost logins, or roost logins rm ID")
	}
	var own []entryRecord
	if dir, err := login.Dir(c.getenv); err == nil {
		for _, node := range login.Nodes(dir) {
			if e, err := login.Load(dir, node); err == nil {
				own = append(own, entryRecord{e.Node, e.User, e.Address, e.Expires()})
			} else {
				fmt.Fprintln(c.stderr, errorText(err))
			}
		}
	}
	var there *wire.LoginsReply
	err := c.callSchedd(askTimeout, func(ctx context.Context, s wire.ScheddClient) (err error) {
		there, err = s.Logins(ctx, &wire.LoginsRequest{})
		return err
	})
	if err != nil && len(own) == 0 {
		return err
	}
	if c.wantsJSON() {
		given := make([]loginRecord, 0, len(there.GetLogins()))
		for _, l := range there.GetLogins() {
			given = append(given, loginRecord{l.GetId(), l.GetUser(), l.GetFrom(), timestamp(l.GetMade()),
				timestamp(l.GetExpires()), timestamp(l.GetRevoked())})
		}
		return printJSON(c.stdout, jsonDocument{"here": append([]entryRecord{}, own...), "node": there.GetNode(),
			"logins": given})
	}
	c.loginTables(own, there)
	if err != nil {
		fmt.Fprintf(c.stderr, "who is logged in here cannot be told: %s\n", errorText(err))
	}
	return nil
}

func (c *invocation) loginTables(own []entryRecord, there *wire.LoginsReply) {
	if len(own) > 0 {
		t := &textTable{columns: []tableColumn{{head: "LOGGED IN AT"}, {head: "AS"}, {head: "ADDRESS"},
			{head: "EXPIRES"}}}
		for _, e := range own {
			t.addRow(tableCell{e.Node, ""}, tableCell{printableText(e.User), ""}, tableCell{e.Address, ""},
				tableCell{c.untilText(e.Expires), ""})
		}
		t.print(c.stdout, c.out)
	}
	if len(there.GetLogins()) == 0 {
		if len(own) == 0 {
			fmt.Fprintln(c.stderr,
				"nobody is logged in as you, and you are logged in nowhere; begin with: roost token --user")
		}
		return
	}
	if len(own) > 0 {
		fmt.Fprintln(c.stdout)
	}
	t := &textTable{columns: []tableColumn{{head: "LOGIN"}, {head: "AT"}, {head: "USER"}, {head: "FROM"},
		{head: "MADE", dropPriority: 1}, {head: "EXPIRES"}, {head: "STATE"}}}
	for _, l := range there.GetLogins() {
		state := "holds"
		switch {
		case l.GetRevoked() != 0:
			state = "revoked"
		case l.GetExpires() < c.now().UnixNano():
			state = "expired"
		case l.GetOwn():
			state = "this one"
		}
		t.addRow(tableCell{l.GetId(), ""}, tableCell{there.GetNode(), ""}, tableCell{printableText(l.GetUser()), ""},
			tableCell{printableText(l.GetFrom()), ""}, tableCell{c.agoText(l.GetMade()), ""},
			tableCell{c.untilText(timeOfNanos(l.GetExpires())), ""}, tableCell{state, ""})
	}
	t.print(c.stdout, c.out)
}

// revokeLogin revokes a login, by its id; or by the name of a node this machine's there.
func (c *invocation) revokeLogin(which string) error {
	e, err := c.loginAt(which)
	if err != nil {
		return err
	}
	id := which
	if e != nil {
		c.scheddNode, id = e.Node, ""
	}
	var gone *wire.LoginInfo
	err = c.callSchedd(askTimeout, func(ctx context.Context, s wire.ScheddClient) (err error) {
		gone, err = s.Logout(ctx, &wire.LogoutRequest{Id: id})
		return err
	})
	if e != nil && (err == nil || errors.Is(err, roost.Unauthenticated)) { // it did not hold any more
		dir, derr := login.Dir(c.getenv)
		if derr == nil {
			derr = login.Forget(dir, e.Node)
		}
		if derr != nil && !errors.Is(derr, os.ErrNotExist) {
			return derr
		}
		fmt.Fprintf(c.stdout, "This machine is logged out at %s.\n", e.Node)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "Login %s of %s from %s is revoked.\n", gone.GetId(), printableText(gone.GetUser()),
		printableText(gone.GetFrom()))
	return nil
}
