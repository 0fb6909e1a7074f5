package startd

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
)

// accounts says as whom tasks run. A submit node names a user by number, and may be mistaken or lie; groups are what this machine's directory says, and
// whose word counts at all is its owner's setting.
type accounts struct {
	own        uint32 // uid of this process
	node       string
	domain     string // FileSystemDomain
	allowRoot  bool
	rules      config.Accounts
	directory  userDirectory
	uids, gids []account.Range // that there are
}

// userDirectory is account.Directory. An error means that nobody knows.
type userDirectory interface {
	User(uid uint32) (account.User, error)
	Group(gid uint32) (account.Group, error)
}

// claimant is whom a submit node wants a claim for, in its words.
type claimant struct {
	node, domain string
	uid, gid     uint32
	groupChosen  bool // gid is not the user's primary group there
}

// rights are as whom the tasks of a claim run.
type rights struct {
	files.Credential
	slot bool // a slot user, who is still to be chosen
}

func newAccounts(node *config.Node, own *config.Startd) *accounts {
	return &accounts{
		own: uint32(os.Geteuid()), node: node.Name, domain: node.FileSystemDomain, allowRoot: own.AllowRoot, rules: own.Accounts, directory: account.NewDirectory(),
		uids: account.Mapped("/proc/self/uid_map"), gids: account.Mapped("/proc/self/gid_map"),
	}
}

// resolve says as whom a claimant's tasks run here, or why they do not. It may take as long as the directory does.
func (a *accounts) resolve(c claimant) (rights, error) {
	if err := a.admit(c.uid); err != nil {
		return rights{}, err
	}
	if c.uid == a.own {
		return rights{Credential: ownCredential()}, nil
	}
	user, err := a.directory.User(c.uid)
	if err != nil {
		return rights{}, fmt.Errorf("on %s: %w", a.node, err)
	}
	itself, err := a.runsAsItself(c, user)
	if err != nil || !itself {
		return rights{slot: err == nil}, err
	}
	gid, err := a.group(c, user)
	return rights{Credential: files.Credential{UID: c.uid, GID: gid, Groups: user.Groups}}, err
}

// admit says why no task runs here by that number, whoever asks.
func (a *accounts) admit(uid uint32) error {
	if a.own != 0 && uid != a.own {
		return fmt.Errorf("%w: this startd runs as uid %d without root's rights, so it cannot run tasks of uid %d", roost.PermissionDenied, a.own, uid)
	}
	if err := account.CheckUID(uid); err != nil {
		return err
	}
	switch {
	case a.own != 0:
	case !has(a.uids, uid):
		return fmt.Errorf("%w: uid %d is none on %s, whose container has others (/proc/self/uid_map)", roost.PermissionDenied, uid, a.node)
	case uid < account.FirstUser && !a.allowRoot:
		return fmt.Errorf("%w: uid %d is root or a system user, and allow_root is not set for this startd", roost.PermissionDenied, uid)
	case a.rules.SlotUIDs.Has(uid):
		return fmt.Errorf("%w: uid %d is one of the slot users of %s (slot_uids), as whom tasks of others run there", roost.PermissionDenied, uid, a.node)
	}
	return nil
}

func has(list []account.Range, id uint32) bool {
	return slices.ContainsFunc(list, func(r account.Range) bool { return r.Has(id) })
}

// runsAsItself reports whether a user's tasks run by the user's own number, and not as a slot user's; or says why they do not run at all. Files that
// several hosts share need true numbers, and there is no slot user for them.
func (a *accounts) runsAsItself(c claimant, user account.User) (bool, error) {
	here := strings.EqualFold(c.node, a.node)
	trusted := here || a.rules.Trusts(c.node, user)
	shared := c.domain == a.domain && a.domain != a.node // that it is, an administrator has said: unless set it is the node's own name
	who := fmt.Sprintf("uid %d", user.UID)
	if user.Known {
		who = fmt.Sprintf("%s (uid %d)", user.Name, user.UID)
	}
	switch {
	case a.rules.Users == config.SlotUser && !trusted && !shared:
		return false, nil
	case len(a.rules.Trust) > 0 && !trusted:
		return false, fmt.Errorf("%w: the owner of %s does not let submit node %s name %s: a trust block for it, in accounts of the node file there, would",
			roost.PermissionDenied, a.node, c.node, who)
	case a.rules.Users == config.AnyUser || a.rules.Users == "" || user.Known || here || trusted && a.rules.Users == config.SlotUser:
		return true, nil
	case a.rules.Users == config.SlotUser:
		return false, fmt.Errorf("%w: %s is not in the user directory of %s, which shares the files of domain %s, so the tasks cannot run as anybody else: have an account made there",
			roost.PermissionDenied, who, a.node, a.domain)
	}
	return false, fmt.Errorf("%w: %s is not in the user directory of %s, and users = \"directory\" is set there: have an account made there", roost.PermissionDenied, who, a.node)
}

// group is the group that tasks run in: the one that is asked for if the user is a member here. Otherwise it is the user's primary group here, unless the
// user chose the other one, and would be surprised. A user whom the directory does not know is a member of groups that it does not know either.
func (a *accounts) group(c claimant, user account.User) (uint32, error) {
	what := "gid " + fmt.Sprint(c.gid)
	g, err := a.directory.Group(c.gid)
	if err != nil {
		return 0, fmt.Errorf("on %s: %w", a.node, err)
	}
	if g.Known {
		what = fmt.Sprintf("group %s (gid %d)", g.Name, c.gid)
	}
	if !user.Known {
		for _, gid := range []uint32{c.gid, c.uid} {
			if fine, err := a.unknownGroup(gid); fine || err != nil {
				return gid, err
			}
			if c.groupChosen {
				break
			}
		}
		return 0, fmt.Errorf("%w: on %s uid %d is in no group, and %s is not for those who are not in it: have an account made there", roost.PermissionDenied, a.node, c.uid, what)
	}
	switch {
	case slices.Contains(user.Groups, c.gid):
		return c.gid, nil
	case c.groupChosen:
		return 0, fmt.Errorf("%w: %s (uid %d) is not in %s on %s: have the user added to it there, or submit without choosing a group",
			roost.PermissionDenied, user.Name, user.UID, what, a.node)
	}
	return user.GID, nil
}

// unknownGroup reports whether a group means nothing on this machine: it is neither the system's, nor in the directory, nor a slot user's.
func (a *accounts) unknownGroup(gid uint32) (bool, error) {
	if gid < account.FirstUser || account.CheckUID(gid) != nil || !has(a.gids, gid) || a.rules.SlotUIDs.Has(gid) {
		return false, nil
	}
	g, err := a.directory.Group(gid)
	return err == nil && !g.Known, err
}

// slotUser chooses the slot user of a submit node's user: always the same one, also on other machines with the same slot_uids, so that a checkpoint that was taken
// as that one can be gone on from; or the next one that is free, where another has it.
func (a *accounts) slotUser(node string, uid uint32, taken func(slot uint32) bool) (files.Credential, error) {
	size := a.rules.SlotUIDs.Size()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", strings.ToLower(node), uid))
	first := binary.LittleEndian.Uint32(sum[:])
	for i := range min(size, maxSlotTries) {
		slot := a.rules.SlotUIDs.First + (first%size+i)%size
		if !has(a.uids, slot) || !has(a.gids, slot) {
			return files.Credential{}, fmt.Errorf("%w: slot user %d is none on %s, whose container has others: set slot_uids there, in accounts of the node file", roost.BadConfig, slot, a.node)
		}
		if !taken(slot) {
			return files.Credential{UID: slot, GID: slot}, nil
		}
	}
	return files.Credential{}, fmt.Errorf("%w: all slot users of %s (slot_uids) that it might be are taken", roost.Exhausted, a.node)
}

// maxSlotTries is how many slot users are looked at before a claim is refused.
const maxSlotTries = 10_000

// ownCredential is that of this process.
func ownCredential() files.Credential {
	c := files.Credential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	groups, _ := os.Getgroups()
	for _, g := range groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	return c
}

// credential is as whom the tasks of a claim run. A claim of the release before has only numbers in its file.
func (a *accounts) credential(f *claimFile) files.Credential {
	if f.Rights != nil {
		return *f.Rights
	}
	if f.UID == a.own {
		return ownCredential()
	}
	user, _ := a.directory.User(f.UID)
	return files.Credential{UID: f.UID, GID: f.GID, Groups: user.Groups}
}

// claimantRights looks up as whom a request's tasks would run, before the loop hears of it: that one must not wait for a directory.
func (m *machine) claimantRights(schedd string, message *wire.ToStartd) verdict {
	r := message.GetClaim()
	if r == nil {
		return verdict{}
	}
	c := claimant{node: schedd, uid: r.GetUid(), gid: r.GetGid(), groupChosen: r.GetGroupChosen()}
	if m.own.Accounts.Users == config.SlotUser {
		if ad, err := classad.Parse(r.GetAd()); err == nil {
			c.domain, _ = ad.Str(roost.AttrFileSystemDomain)
		}
	}
	rights, err := m.accounts.resolve(c)
	return verdict{rights, err}
}

// verdict is the answer of accounts.resolve.
type verdict struct {
	rights rights
	err    error
}

// rightsOf chooses the slot user of a claim that is to have one.
func (l *loop) rightsOf(schedd string, uid uint32, r rights) (files.Credential, error) {
	if !r.slot {
		return r.Credential, nil
	}
	return l.m.accounts.slotUser(schedd, uid, func(slot uint32) bool {
		for _, h := range l.hands {
			if h.file.Rights != nil && h.file.Rights.UID == slot && (h.file.UID != uid || h.file.Schedd != schedd) {
				return true
			}
		}
		return false
	})
}
