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
		name: "token", group: groupPool, summary: "let another machine into the pool", synopsis: "[list | rm ID]",
		maxOperands: -1,
		description: "Prints the line that makes one machine a member of the pool. It is good once, and for an hour " +
			"unless said. Run it where the pool's authority is, as root. " +
			"list shows the tokens that were made and the machines that have joined; rm takes a token back.",
		examples: []commandExample{
			{"sudo roost token --desktop", "print the line for somebody's desktop"},
			{"sudo roost token --server --for n7 --expires 1d",
				"for n7 alone, until tomorrow; if there is an n7 it is replaced"},
			{"sudo roost token rm 3f9c", "take a token back"},
		},
		flags: append(append(roleFlags(),
			&ucli.BoolFlag{Name: "user", Usage: "instead, print the line with which you act on your jobs here from " +
				"another machine; see roost-login(1)"},
			&ucli.StringFlag{Name: "for", Usage: "the `NAME` of the only node that may use it"},
			&ucli.StringFlag{Name: "expires", Usage: "how `LONG` it is good", Value: "1h"},
		), authorityFlags()...),
		run: func(c *invocation) error {
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
			return usageErrorf("write it as roost token, roost token list, or roost token rm ID")
		},
	}
}

// authority connects to the authority on this machine.
func (c *invocation) authority() (wire.AuthorityClient, error) {
	n, err := config.Load(c.stringFlag("config"))
	if err != nil {
		return nil, fmt.Errorf("%w (roost init begins a pool)", err)
	}
	if n.Authority == nil {
		at := "it is not named in the node file"
		if n.AuthorityAt != "" {
			at = "it is at " + n.AuthorityAt
		}
		return nil, fmt.Errorf("%s: %w: the authority of the pool is not on this machine (%s): run this there", n.File,
			roost.Conflict, at)
	}
	conn, err := rpc.Dial("unix:"+n.AuthoritySocket(), nil, "")
	if err != nil {
		return nil, err
	}
	c.closeLater(conn)
	return wire.NewAuthorityClient(conn), nil
}

// authorityUnanswered says what to do where the authority does not answer.
func authorityUnanswered(err error) error {
	err = rpc.FromStatus(err)
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "permission denied"):
		return fmt.Errorf("authority: %w: become root for this (sudo)", roost.PermissionDenied)
	case rpc.KindOf(err) == roost.Unavailable:
		return fmt.Errorf("authority: %w: it does not answer: is roost running here (systemctl status roost, or "+
			"roost master)?", roost.Unavailable)
	}
	return err
}

func (c *invocation) makeToken() error {
	part, err := c.nodeRole()
	if err != nil {
		return err
	}
	if part == "" {
		return roleUsage()
	}
	life, err := roost.ParseDuration(c.stringFlag("expires"))
	if err != nil {
		return usageErrorf("--expires: %v", err)
	}
	client, err := c.authority()
	if err != nil {
		return err
	}
	made, err := client.MakeToken(c.ctx,
		&wire.MakeTokenRequest{Part: string(part), Name: c.stringFlag("for"), Life: int64(life)})
	if err != nil {
		return authorityUnanswered(err)
	}
	line := joinLine(made.GetAddress(), made.GetToken(), part)
	fmt.Fprintf(c.stderr, "Run this on the new machine, as root, before %s. It is good for one machine, and whoever "+
		"has it can use it.\n\n", time.Unix(0, made.GetInfo().GetExpires()).Format("Mon 15:04"))
	_, err = fmt.Fprintln(c.stdout, line)
	return err
}

func (c *invocation) removeToken(id string) error {
	client, err := c.authority()
	if err != nil {
		return err
	}
	gone, err := client.RemoveToken(c.ctx, &wire.RemoveTokenRequest{Id: id})
	if err != nil {
		return authorityUnanswered(err)
	}
	fmt.Fprintf(c.stderr, "Token %s is gone.\n", gone.GetRemoved().GetId())
	if by := gone.GetRemoved().GetUsedBy(); by != "" {
		fmt.Fprintf(c.stderr, "%s has used it and stays a member; roost revoke %s puts it out.\n", by, by)
	}
	return nil
}

func revokeNode(c *invocation) error {
	client, err := c.authority()
	if err != nil {
		return err
	}
	if _, err := client.Revoke(c.ctx,
		&wire.RevokeRequest{Name: c.args[0], Reason: c.stringFlag("reason")}); err != nil {
		return authorityUnanswered(err)
	}
	fmt.Fprintf(c.stderr, "%s is out: the authority refuses it now, and the other nodes when they have fetched the "+
		"list, within 15 seconds.\n", c.args[0])
	return nil
}

// tokenState is a token's, for people.
func tokenState(t *wire.TokenInfo, now time.Time) string {
	switch {
	case t.GetUsed() != 0:
		return "used by " + t.GetUsedBy() + " from " + t.GetUsedFrom()
	case now.UnixNano() >= t.GetExpires():
		return "ran out"
	}
	return "open"
}

func memberState(m *wire.MemberInfo, now time.Time) string {
	switch {
	case m.GetRevoked() != 0:
		return "revoked: " + m.GetReason()
	case now.UnixNano() >= m.GetExpires():
		return "expired"
	}
	return "member"
}

// listTokens shows what was given out: the tokens, and the machines that they have let
// in.
func (c *invocation) listTokens() error {
	client, err := c.authority()
	if err != nil {
		return err
	}
	all, err := client.Members(c.ctx, &wire.MembersRequest{})
	if err != nil {
		return authorityUnanswered(err)
	}
	now := c.now()
	t := &textTable{columns: []tableColumn{{head: "TOKEN"}, {head: "FOR"}, {head: "NAME"}, {head: "EXPIRES"},
		{head: "STATE", minWidth: 12}}}
	for _, k := range all.GetTokens() {
		t.addRow(tableCell{k.GetId(), ""}, tableCell{k.GetPart(), ""}, tableCell{cmp.Or(k.GetName(), "-"), ""},
			tableCell{c.untilText(time.Unix(0, k.GetExpires())), ""}, tableCell{tokenState(k, now), ""})
	}
	if len(t.rows) > 0 {
		t.print(c.stdout, c.out)
		fmt.Fprintln(c.stdout)
	}
	m := &textTable{columns: []tableColumn{{head: "NODE"}, {head: "PART"}, {head: "FROM", dropPriority: 2},
		{head: "JOINED", dropPriority: 1}, {head: "EXPIRES"}, {head: "STATE", minWidth: 12}}}
	for _, k := range all.GetMembers() {
		m.addRow(tableCell{k.GetName(), ""}, tableCell{cmp.Or(k.GetPart(), strings.Join(k.GetRoles(), ","), "-"), ""},
			tableCell{cmp.Or(k.GetFrom(), "-"), ""},
			tableCell{c.untilText(time.Unix(0, k.GetJoined())), ""},
			tableCell{c.untilText(time.Unix(0, k.GetExpires())), ""}, tableCell{printableText(memberState(k, now)), ""})
	}
	m.print(c.stdout, c.out)
	return nil
}
