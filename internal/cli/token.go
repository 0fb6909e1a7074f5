package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// authorityFlags say where the authority is.
func authorityFlags() []ucli.Flag { return []ucli.Flag{configFlag()} }

func tokenCommand() *command {
	return &command{
		name: "token", group: groupPool, brief: "let another machine into the pool", args: "[list | rm ID]", most: -1,
		about: "Prints the line that makes one machine a member of the pool. It is good once, and for an hour unless said. Run it where the pool's authority is, as root. " +
			"list shows the tokens that were made and the machines that have joined; rm takes a token back.",
		examples: []example{
			{"sudo roost token --desktop", "print the line for somebody's desktop"},
			{"sudo roost token --server --for n7 --expires 1d", "for n7 alone, until tomorrow; if there is an n7 it is replaced"},
			{"sudo roost token rm 3f9c", "take a token back"},
		},
		flags: append(append(partFlags(),
			&ucli.BoolFlag{Name: "user", Usage: "instead, print the line with which you act on your jobs here from another machine; see roost-login(1)"},
			&ucli.StringFlag{Name: "for", Usage: "the `NAME` of the only node that may use it"},
			&ucli.StringFlag{Name: "expires", Usage: "how `LONG` it is good", Value: "1h"},
		), authorityFlags()...),
		do: func(c *call) error {
			switch {
			case c.flag("user"):
				return c.userToken()
			case len(c.args) == 0:
				return c.makeToken()
			case c.args[0] == "list" && len(c.args) == 1:
				return c.listTokens()
			case c.args[0] == "rm" && len(c.args) == 2:
				return c.removeToken(c.args[1])
			}
			return usage("write it as roost token, roost token list, or roost token rm ID")
		},
	}
}

// authority connects to the authority on this machine.
func (c *call) authority() (wire.AuthorityClient, error) {
	n, err := config.Load(c.text("config"))
	if err != nil {
		return nil, fmt.Errorf("%w (roost init begins a pool)", err)
	}
	if n.Authority == nil {
		at := "it is not named in the node file"
		if n.AuthorityAt != "" {
			at = "it is at " + n.AuthorityAt
		}
		return nil, fmt.Errorf("%s: %w: the authority of the pool is not on this machine (%s): run this there", n.File, roost.Conflict, at)
	}
	conn, err := rpc.Dial("unix:"+n.AuthoritySocket(), nil, "")
	if err != nil {
		return nil, err
	}
	c.conn = conn
	return wire.NewAuthorityClient(conn), nil
}

// unanswered says what to do where the authority does not answer.
func unanswered(err error) error {
	err = rpc.FromStatus(err)
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "permission denied"):
		return fmt.Errorf("authority: %w: become root for this (sudo)", roost.PermissionDenied)
	case rpc.KindOf(err) == roost.Unavailable:
		return fmt.Errorf("authority: %w: it does not answer: is roost running here (systemctl status roost, or roost master)?", roost.Unavailable)
	}
	return err
}

func (c *call) makeToken() error {
	part, err := c.part()
	if err != nil {
		return err
	}
	if part == "" {
		return usageOfParts()
	}
	life, err := roost.ParseDuration(c.text("expires"))
	if err != nil {
		return usage("--expires: %v", err)
	}
	client, err := c.authority()
	if err != nil {
		return err
	}
	made, err := client.MakeToken(c.ctx, &wire.MakeTokenRequest{Part: string(part), Name: c.text("for"), Life: int64(life)})
	if err != nil {
		return unanswered(err)
	}
	line := poolLine(made.GetAddress(), made.GetToken(), part)
	fmt.Fprintf(c.stderr, "Run this on the new machine, as root, before %s. It is good for one machine, and whoever has it can use it.\n\n", time.Unix(0, made.GetInfo().GetExpires()).Format("Mon 15:04"))
	_, err = fmt.Fprintln(c.stdout, line)
	return err
}

func (c *call) removeToken(id string) error {
	client, err := c.authority()
	if err != nil {
		return err
	}
	gone, err := client.RemoveToken(c.ctx, &wire.RemoveTokenRequest{Id: id})
	if err != nil {
		return unanswered(err)
	}
	fmt.Fprintf(c.stderr, "Token %s is gone.\n", gone.GetRemoved().GetId())
	if by := gone.GetRemoved().GetUsedBy(); by != "" {
		fmt.Fprintf(c.stderr, "%s has used it and stays a member; roost revoke %s puts it out.\n", by, by)
	}
	return nil
}

func revokeNode(c *call) error {
	client, err := c.authority()
	if err != nil {
		return err
	}
	if _, err := client.Revoke(c.ctx, &wire.RevokeRequest{Name: c.args[0], Reason: c.text("reason")}); err != nil {
		return unanswered(err)
	}
	fmt.Fprintf(c.stderr, "%s is out: the authority refuses it now, and the other nodes when they have fetched the list, within 15 seconds.\n", c.args[0])
	return nil
}

// stateOfToken is a token's, for people.
func stateOfToken(t *wire.TokenInfo, now time.Time) string {
	switch {
	case t.GetUsed() != 0:
		return "used by " + t.GetUsedBy() + " from " + t.GetUsedFrom()
	case now.UnixNano() >= t.GetExpires():
		return "ran out"
	}
	return "open"
}

func stateOfMember(m *wire.MemberInfo, now time.Time) string {
	switch {
	case m.GetRevoked() != 0:
		return "revoked: " + m.GetReason()
	case now.UnixNano() >= m.GetExpires():
		return "expired"
	}
	return "member"
}

// listTokens shows what was given out: the tokens, and the machines that they have let in.
func (c *call) listTokens() error {
	client, err := c.authority()
	if err != nil {
		return err
	}
	all, err := client.Members(c.ctx, &wire.MembersRequest{})
	if err != nil {
		return unanswered(err)
	}
	now := c.now()
	t := &table{columns: []column{{head: "TOKEN"}, {head: "FOR"}, {head: "NAME"}, {head: "EXPIRES"}, {head: "STATE", least: 12}}}
	for _, k := range all.GetTokens() {
		t.add(cell{k.GetId(), ""}, cell{k.GetPart(), ""}, cell{cmp.Or(k.GetName(), "-"), ""}, cell{c.until(time.Unix(0, k.GetExpires())), ""}, cell{stateOfToken(k, now), ""})
	}
	if len(t.rows) > 0 {
		t.print(c.stdout, c.out)
		fmt.Fprintln(c.stdout)
	}
	m := &table{columns: []column{{head: "NODE"}, {head: "PART"}, {head: "FROM", spare: 2}, {head: "JOINED", spare: 1}, {head: "EXPIRES"}, {head: "STATE", least: 12}}}
	for _, k := range all.GetMembers() {
		m.add(cell{k.GetName(), ""}, cell{cmp.Or(k.GetPart(), strings.Join(k.GetRoles(), ","), "-"), ""}, cell{cmp.Or(k.GetFrom(), "-"), ""},
			cell{c.until(time.Unix(0, k.GetJoined())), ""}, cell{c.until(time.Unix(0, k.GetExpires())), ""}, cell{printable(stateOfMember(k, now)), ""})
	}
	m.print(c.stdout, c.out)
	return nil
}
