package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost/internal/account"
)

// TaskAccounts configures whose tasks a startd that runs as root accepts, and the users
// as whom they run.
type TaskAccounts struct {
	Users    AccountUsers
	SlotUIDs account.IDRange
	Trust    TrustList // empty: every submit node of the pool may name every user, within Users
	// as whom tasks of other pools run: GuestSlots, or the name of a user; empty: they do
	// not run
	Guests string
}

// TrustList lists the users that submit nodes may name.
type TrustList []SubmitNodeTrust

// SubmitNodeTrust lists the users that some submit nodes may name.
type SubmitNodeTrust struct {
	Node  string   // pattern of path.Match, without regard to case
	Users []string // user names in this machine's directory, uids, ranges of uids, or "*"
}

// AccountUsers selects the users as whom tasks run.
type AccountUsers string

// The values of AccountUsers.
const (
	// tasks run as their users; a user that the machine's directory does not have has a
	// uid and no groups
	AnyUser AccountUsers = "any"
	// tasks run as their users; tasks of a user that the directory does not have do not
	// run
	DirectoryUser AccountUsers = "directory"
	SlotUser      AccountUsers = "slots" // tasks from other nodes run as slot users, which belong to no person
)

// GuestSlots has tasks of other pools run as slot users.
const GuestSlots = "slots"

// defaultSlotUIDs lie outside of the uids of accounts and of containers (systemd's
// UIDS-GIDS: 1879048192 to 2147483647 are unused).
var defaultSlotUIDs = account.IDRange{First: 1_900_000_000, Last: 1_900_000_000 + 1<<20 - 1}

// fillDefaults sets defaults that depend on the policy: others must not use the uid of a
// desktop's owner.
func (a *TaskAccounts) fillDefaults(policy string) {
	if a.Users == "" {
		a.Users = AnyUser
		if strings.HasPrefix(policy, "desktop") {
			a.Users = SlotUser
		}
	}
	if (a.Users == SlotUser || a.Guests == GuestSlots) && a.SlotUIDs == (account.IDRange{}) {
		a.SlotUIDs = defaultSlotUIDs
	}
}

// MayNameUser reports whether a submit node may name a user, by the settings of the
// machine's administrator.
func (l TrustList) MayNameUser(node string, user account.UserEntry) bool {
	return slices.ContainsFunc(l, func(t SubmitNodeTrust) bool {
		match, err := path.Match(strings.ToLower(t.Node), strings.ToLower(node))
		return err == nil && match && slices.ContainsFunc(t.Users, func(text string) bool {
			r, err := account.ParseRange(text)
			return text == "*" || err == nil && r.Contains(user.UID) || user.IsKnown && text == user.Name
		})
	})
}

func (s *blockReader) readAccounts(b *hclsyntax.Block, to *TaskAccounts) {
	a := s.innerBlock(b)
	a.readSetting("users", `"directory"`, func(text string) error {
		if to.Users = AccountUsers(text); to.Users != AnyUser && to.Users != DirectoryUser && to.Users != SlotUser {
			return fmt.Errorf("%q is none of %q, %q, %q", text, AnyUser, DirectoryUser, SlotUser)
		}
		return nil
	})
	a.readSetting("slot_uids", `"1900000000-1901048575"`, func(text string) (err error) {
		if to.SlotUIDs, err = account.ParseRange(text); err == nil && to.SlotUIDs.First < account.FirstUser {
			err = fmt.Errorf("%s: uids below %d are the system's", text, account.FirstUser)
		}
		return err
	})
	a.readSetting("guests", `"slots"`, func(text string) error {
		if to.Guests = text; text == "" || strings.ContainsAny(text, " :/\t\n") {
			return fmt.Errorf("%q is neither %q nor the name of a user", text, GuestSlots)
		}
		return nil
	})
	for _, b := range a.nestedBlocks("trust") {
		a.readTrust(b, &to.Trust)
	}
	a.reportUnknown()
}

func (s *blockReader) readTrust(b *hclsyntax.Block, to *TrustList) {
	var t SubmitNodeTrust
	t.Users = []string{}
	if len(b.Labels) != 1 {
		s.addProblem(b.TypeRange, `as in: trust "login*" { users = ["*"] }`,
			"trust is of one name or pattern of submit nodes")
	} else if t.Node = b.Labels[0]; !isValidPattern(t.Node) {
		s.addProblem(b.LabelRanges[0], `write it as: trust "login*" { … }`, "trust: %q is no pattern of names", t.Node)
	}
	in := s.innerBlock(b)
	in.readList("users", `"ann", "33000-33999"`, &t.Users, func(text string, at hcl.Range) {
		if text == "" || strings.ContainsAny(text, " :\t\n") {
			in.addProblem(at, `write names, uids, ranges of uids, or "*"`, "users: %q is no user", text)
		}
	})
	in.reportUnknown()
	if len(t.Users) == 0 {
		s.addProblem(b.TypeRange, `add users = ["*"], or name them`, "trust without users trusts nobody")
	}
	*to = append(*to, t)
}

func isValidPattern(pattern string) bool {
	_, err := path.Match(pattern, "")
	return err == nil && pattern != ""
}

func (w fileWriter) writeAccounts(a TaskAccounts) {
	if a.Users == "" && a.SlotUIDs == (account.IDRange{}) && len(a.Trust) == 0 && a.Guests == "" {
		return
	}
	b := w.writeBlock("accounts")
	b.writeText("users", string(a.Users))
	if a.SlotUIDs != (account.IDRange{}) {
		b.writeText("slot_uids", a.SlotUIDs.String())
	}
	b.writeText("guests", a.Guests)
	for _, t := range a.Trust {
		b.writeBlock("trust", t.Node).writeList("users", t.Users)
	}
}
