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
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
)

// taskAccounts says as whom tasks run. A submit node names a user by number, and may be
// mistaken or lie; groups are what this machine's directory says, and whose word counts
// at all is its owner's setting.
type taskAccounts struct {
	ownUID     uint32 // uid of this process
	node       string
	domain     string // FileSystemDomain
	allowRoot  bool
	rules      config.TaskAccounts
	directory  userDirectory
	uids, gids []account.IDRange // that there are
}

// userDirectory is addFinalUsage.Directory. An error means that nobody knows.
type userDirectory interface {
	User(uid uint32) (account.UserEntry, error)
	Group(gid uint32) (account.GroupEntry, error)
}

// claimOwner is whom a submit node wants a claim for, in its words.
type claimOwner struct {
	node, domain string
	uid, gid     uint32
	groupChosen  bool // gid is not the user's primary group there
}

// claimCredential are as whom the tasks of a claim run.
type claimCredential struct {
	userfiles.UserCredential
	slotUserPending bool // a slot user, who is still to be chosen
}

func newAccounts(node *config.Node, own *config.StartdSettings) *taskAccounts {
	return &taskAccounts{
		ownUID: uint32(os.Geteuid()), node: node.Name, domain: node.FileSystemDomain, allowRoot: own.AllowRoot,
		rules: own.Accounts, directory: account.NewDirectory(),
		uids: account.MappedRanges("/proc/self/uid_map"), gids: account.MappedRanges("/proc/self/gid_map"),
	}
}

// resolve says as whom a claimant's tasks run here, or why they do not. It may take as
// long as the directory does.
func (a *taskAccounts) resolve(c claimOwner) (claimCredential, error) {
	if err := a.refusalReason(c.uid); err != nil {
		return claimCredential{}, err
	}
	if c.uid == a.ownUID {
		return claimCredential{UserCredential: ownCredential()}, nil
	}
	user, err := a.directory.User(c.uid)
	if err != nil {
		return claimCredential{}, fmt.Errorf("on %s: %w", a.node, err)
	}
	itself, err := a.runsAsOwnUID(c, user)
	if err != nil || !itself {
		return claimCredential{slotUserPending: err == nil}, err
	}
	gid, err := a.taskGroup(c, user)
	return claimCredential{UserCredential: userfiles.UserCredential{UID: c.uid, GID: gid, Groups: user.Groups}}, err
}

// refusalReason says why no task runs here by that number, whoever asks.
func (a *taskAccounts) refusalReason(uid uint32) error {
	if a.ownUID != 0 && uid != a.ownUID {
		return fmt.Errorf("%w: this startd runs as uid %d without root's rights, so it cannot run tasks of uid %d",
			roost.PermissionDenied, a.ownUID, uid)
	}
	if err := account.CheckUID(uid); err != nil {
		return err
	}
	switch {
	case a.ownUID != 0:
	case !inRanges(a.uids, uid):
		return fmt.Errorf("%w: uid %d is none on %s, whose container has others (/proc/self/uid_map)",
			roost.PermissionDenied, uid, a.node)
	case uid < account.FirstUser && !a.allowRoot:
		return fmt.Errorf("%w: uid %d is root or a system user, and allow_root is not set for this startd",
			roost.PermissionDenied, uid)
	case a.rules.SlotUIDs.Contains(uid):
		return fmt.Errorf("%w: uid %d is one of the slot users of %s (slot_uids), as whom tasks of others run there",
			roost.PermissionDenied, uid, a.node)
	}
	return nil
}

func inRanges(list []account.IDRange, id uint32) bool {
	return slices.ContainsFunc(list, func(r account.IDRange) bool { return r.Contains(id) })
}

// runsAsOwnUID reports whether a user's tasks run by the user's own number, and not as a
// slot user's; or says why they do not run at all. Files that several hosts share need
// true numbers, and there is no slot user for them.
func (a *taskAccounts) runsAsOwnUID(c claimOwner, user account.UserEntry) (bool, error) {
	here := strings.EqualFold(c.node, a.node)
	trusted := here || a.rules.MayNameUser(c.node, user)
	// that it is, an administrator has said: unless set it is the node's own name
	shared := c.domain == a.domain && a.domain != a.node
	who := fmt.Sprintf("uid %d", user.UID)
	if user.IsKnown {
		who = fmt.Sprintf("%s (uid %d)", user.Name, user.UID)
	}
	switch {
	case a.rules.Users == config.SlotUser && !trusted && !shared:
		return false, nil
	case len(a.rules.Trust) > 0 && !trusted:
		return false, fmt.Errorf("%w: the owner of %s does not let submit node %s name %s: a trust block for it, in "+
			"accounts of the node file there, would",
			roost.PermissionDenied, a.node, c.node, who)
	case a.rules.Users == config.AnyUser || a.rules.Users == "" || user.IsKnown || here ||
		trusted && a.rules.Users == config.SlotUser:
		return true, nil
	case a.rules.Users == config.SlotUser:
		return false, fmt.Errorf("%w: %s is not in the user directory of %s, which shares the files of domain %s, so "+
			"the tasks cannot run as anybody else: have an account made there",
			roost.PermissionDenied, who, a.node, a.domain)
	}
	return false, fmt.Errorf("%w: %s is not in the user directory of %s, and users = \"directory\" is set there: "+
		"have an account made there", roost.PermissionDenied, who, a.node)
}

// taskGroup is the group that tasks run in: the one that is asked for if the user is a
// member here. Otherwise it is the user's primary group here, unless the user chose the
// other one, and would be surprised. A user whom the directory does not know is a member
// of groups that it does not know either.
func (a *taskAccounts) taskGroup(c claimOwner, user account.UserEntry) (uint32, error) {
	what := "gid " + fmt.Sprint(c.gid)
	g, err := a.directory.Group(c.gid)
	if err != nil {
		return 0, fmt.Errorf("on %s: %w", a.node, err)
	}
	if g.IsKnown {
		what = fmt.Sprintf("group %s (gid %d)", g.Name, c.gid)
	}
	if !user.IsKnown {
		for _, gid := range []uint32{c.gid, c.uid} {
			if fine, err := a.isUnknownGroup(gid); fine || err != nil {
				return gid, err
			}
			if c.groupChosen {
				break
			}
		}
		return 0, fmt.Errorf("%w: on %s uid %d is in no group, and %s is not for those who are not in it: have "+
			"an account made there", roost.PermissionDenied, a.node, c.uid, what)
	}
	switch {
	case slices.Contains(user.Groups, c.gid):
		return c.gid, nil
	case c.groupChosen:
		return 0, fmt.Errorf("%w: %s (uid %d) is not in %s on %s: have the user added to it there, or submit without "+
			"choosing a group",
			roost.PermissionDenied, user.Name, user.UID, what, a.node)
	}
	return user.GID, nil
}

// isUnknownGroup reports whether a group means nothing on this machine: it is neither the
// system's, nor in the directory, nor a slot user's.
func (a *taskAccounts) isUnknownGroup(gid uint32) (bool, error) {
	if gid < account.FirstUser || account.CheckUID(gid) != nil || !inRanges(a.gids, gid) ||
		a.rules.SlotUIDs.Contains(gid) {
		return false, nil
	}
	g, err := a.directory.Group(gid)
	return err == nil && !g.IsKnown, err
}

// chooseSlotUser chooses the slot user of a submit node's user: always the same one, also
// on other machines with the same slot_uids, so that a checkpoint that was taken as that
// one can be gone on from; or the next one that is free, where another has it.
func (a *taskAccounts) chooseSlotUser(node string, uid uint32,
	taken func(slot uint32) bool) (userfiles.UserCredential, error) {
	size := a.rules.SlotUIDs.Size()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", strings.ToLower(node), uid))
	first := binary.LittleEndian.Uint32(sum[:])
	for i := range min(size, maxSlotTries) {
		slot := a.rules.SlotUIDs.First + (first%size+i)%size
		if !inRanges(a.uids, slot) || !inRanges(a.gids, slot) {
			return userfiles.UserCredential{},
				fmt.Errorf("%w: slot user %d is none on %s, whose container has others: set slot_uids there, in "+
					"accounts of the node file", roost.BadConfig, slot, a.node)
		}
		if !taken(slot) {
			return userfiles.UserCredential{UID: slot, GID: slot}, nil
		}
	}
	return userfiles.UserCredential{}, fmt.Errorf("%w: all slot users of %s (slot_uids) that it might be are taken",
		roost.Exhausted, a.node)
}

// maxSlotTries is how many slot users are looked at before a claim is refused.
const maxSlotTries = 10_000

// ownCredential is that of this process.
func ownCredential() userfiles.UserCredential {
	c := userfiles.UserCredential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	groups, _ := os.Getgroups()
	for _, g := range groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	return c
}

// credential is as whom the tasks of a claim run. A claim of the release before has only
// numbers in its file.
func (a *taskAccounts) credential(f *claimFile) userfiles.UserCredential {
	if f.Rights != nil {
		return *f.Rights
	}
	if f.UID == a.ownUID {
		return ownCredential()
	}
	user, _ := a.directory.User(f.UID)
	return userfiles.UserCredential{UID: f.UID, GID: f.GID, Groups: user.Groups}
}

// lookUpCredential looks up as whom a request's tasks would run, before the loop hears of
// it: that one must not wait for a directory.
func (m *claimHost) lookUpCredential(schedd string, message *wire.ToStartd) accountDecision {
	r := message.GetClaim()
	if r == nil {
		return accountDecision{}
	}
	c := claimOwner{node: schedd, uid: r.GetUid(), gid: r.GetGid(), groupChosen: r.GetGroupChosen()}
	if m.config.Accounts.Users == config.SlotUser {
		if ad, err := classad.Parse(r.GetAd()); err == nil {
			c.domain, _ = ad.Str(roost.AttrFileSystemDomain)
		}
	}
	rights, err := m.accounts.resolve(c)
	return accountDecision{rights, err}
}

// accountDecision is the answer of accounts.resolve.
type accountDecision struct {
	rights claimCredential
	err    error
}

// claimCredential chooses the slot user of a claim that is to have one.
func (l *machineLoop) claimCredential(schedd string, uid uint32, r claimCredential) (userfiles.UserCredential, error) {
	if !r.slotUserPending {
		return r.UserCredential, nil
	}
	return l.host.accounts.chooseSlotUser(schedd, uid, func(slot uint32) bool {
		for _, h := range l.runners {
			if h.file.Rights != nil && h.file.Rights.UID == slot && (h.file.UID != uid || h.file.Schedd != schedd) {
				return true
			}
		}
		return false
	})
}
