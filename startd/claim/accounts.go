package claim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/userfiles"
)

// Accounts says as whom tasks run. A submit node names a user by number, and may be
// mistaken or lie; groups are what this machine's directory says, and whose word counts
// at all is its owner's setting.
type Accounts struct {
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

// Claimant is whom a submit node wants a claim for, in its words.
type Claimant struct {
	Node, Domain string
	UID, GID     uint32
	GroupChosen  bool // GID is not the user's primary group there
}

// Credential are as whom the tasks of a claim run.
type Credential struct {
	userfiles.UserCredential
	SlotUserPending bool // a slot user, who is still to be chosen
}

func NewAccounts(node *config.Node, own *config.StartdSettings) *Accounts {
	return &Accounts{
		ownUID: uint32(os.Geteuid()), node: node.Name, domain: node.FileSystemDomain, allowRoot: own.AllowRoot,
		rules: own.Accounts, directory: account.NewDirectory(),
		uids: account.MappedRanges("/proc/self/uid_map"), gids: account.MappedRanges("/proc/self/gid_map"),
	}
}

// Resolve says as whom a claimant's tasks run here, or why they do not. It may take as
// long as the directory does.
func (a *Accounts) Resolve(c Claimant) (Credential, error) {
	if err := a.refusalReason(c.UID); err != nil {
		return Credential{}, err
	}
	if c.UID == a.ownUID {
		return Credential{UserCredential: OwnCredential()}, nil
	}
	user, err := a.directory.User(c.UID)
	if err != nil {
		return Credential{}, fmt.Errorf("on %s: %w", a.node, err)
	}
	itself, err := a.runsAsOwnUID(c, user)
	if err != nil || !itself {
		return Credential{SlotUserPending: err == nil}, err
	}
	gid, err := a.taskGroup(c, user)
	return Credential{UserCredential: userfiles.UserCredential{UID: c.UID, GID: gid, Groups: user.Groups}}, err
}

// refusalReason says why no task runs here by that number, whoever asks.
func (a *Accounts) refusalReason(uid uint32) error {
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

// ResolveGuest says as whom the tasks of a guest run here, or why they do not. Numbers of
// users of another pool mean nothing here.
func (a *Accounts) ResolveGuest(pool string) (Credential, error) {
	switch {
	case a.rules.Guests == "":
		return Credential{}, fmt.Errorf("%w: the owner of %s accepts no tasks of other pools (guests, in accounts "+
			"of the "+
			"node file there), and this is one of %s", roost.PermissionDenied, a.node, pool)
	case a.rules.Guests == config.GuestSlots && a.ownUID == 0:
		return Credential{SlotUserPending: true}, nil
	case a.rules.Guests == config.GuestSlots:
		return Credential{}, fmt.Errorf("%w: this startd runs as uid %d without root's rights, so it has no slot users",
			roost.PermissionDenied, a.ownUID)
	}
	u, err := user.Lookup(a.rules.Guests)
	if err != nil {
		return Credential{}, fmt.Errorf("on %s: %w: guests run as %s there: %w", a.node, roost.PermissionDenied,
			a.rules.Guests, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err == nil {
		err = a.refusalReason(uint32(uid))
	}
	if err != nil {
		return Credential{}, fmt.Errorf("on %s: guests run as %s there: %w", a.node, a.rules.Guests, err)
	}
	if uint32(uid) == a.ownUID {
		return Credential{UserCredential: OwnCredential()}, nil
	}
	entry, err := a.directory.User(uint32(uid))
	return Credential{UserCredential: userfiles.UserCredential{UID: uint32(uid), GID: entry.GID,
		Groups: entry.Groups}}, err
}

func inRanges(list []account.IDRange, id uint32) bool {
	return slices.ContainsFunc(list, func(r account.IDRange) bool { return r.Contains(id) })
}

// runsAsOwnUID reports whether a user's tasks run by the user's own number, and not as a
// slot user. The error says why they do not run at all. Files that several hosts share
// need true numbers, and there is no slot user for them.
func (a *Accounts) runsAsOwnUID(c Claimant, user account.UserEntry) (bool, error) {
	here := strings.EqualFold(c.Node, a.node)
	trusted := here || a.rules.Trust.MayNameUser(c.Node, user)
	// that it is, an administrator has said: unless set it is the node's own name
	shared := c.Domain == a.domain && a.domain != a.node
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
			roost.PermissionDenied, a.node, c.Node, who)
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

// taskGroup returns the group that tasks run in. It is the one that is asked for if the
// user is a member here. Otherwise it is the user's primary group here, unless the user
// chose the other one, and would be surprised. A user whom the directory does not know
// is a member of groups that it does not know either.
func (a *Accounts) taskGroup(c Claimant, user account.UserEntry) (uint32, error) {
	what := "gid " + fmt.Sprint(c.GID)
	g, err := a.directory.Group(c.GID)
	if err != nil {
		return 0, fmt.Errorf("on %s: %w", a.node, err)
	}
	if g.IsKnown {
		what = fmt.Sprintf("group %s (gid %d)", g.Name, c.GID)
	}
	if !user.IsKnown {
		for _, gid := range []uint32{c.GID, c.UID} {
			if fine, err := a.isUnknownGroup(gid); fine || err != nil {
				return gid, err
			}
			if c.GroupChosen {
				break
			}
		}
		return 0, fmt.Errorf("%w: on %s uid %d is in no group, and %s is not for those who are not in it: have "+
			"an account made there", roost.PermissionDenied, a.node, c.UID, what)
	}
	switch {
	case slices.Contains(user.Groups, c.GID):
		return c.GID, nil
	case c.GroupChosen:
		return 0, fmt.Errorf("%w: %s (uid %d) is not in %s on %s: have the user added to it there, or submit without "+
			"choosing a group",
			roost.PermissionDenied, user.Name, user.UID, what, a.node)
	}
	return user.GID, nil
}

// isUnknownGroup reports whether a group means nothing on this machine. It is neither
// the system's, nor in the directory, nor a slot user's.
func (a *Accounts) isUnknownGroup(gid uint32) (bool, error) {
	if gid < account.FirstUser || account.CheckUID(gid) != nil || !inRanges(a.gids, gid) ||
		a.rules.SlotUIDs.Contains(gid) {
		return false, nil
	}
	g, err := a.directory.Group(gid)
	return err == nil && !g.IsKnown, err
}

// ChooseSlotUser chooses the slot user of a submit node's user. It is always the same
// one, also on other machines with the same slot_uids, so that a checkpoint that was
// taken there can be restored here. Where another has it, it is the next one that is
// free.
func (a *Accounts) ChooseSlotUser(node string, uid uint32,
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

// OwnCredential is that of this process.
func OwnCredential() userfiles.UserCredential {
	c := userfiles.UserCredential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	groups, _ := os.Getgroups()
	for _, g := range groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	return c
}

// credential is as whom the tasks of a claim run. A claim of the release before has only
// numbers in its file.
func (a *Accounts) credential(f *File) userfiles.UserCredential {
	if f.Rights != nil {
		return *f.Rights
	}
	if f.UID == a.ownUID {
		return OwnCredential()
	}
	user, _ := a.directory.User(f.UID)
	return userfiles.UserCredential{UID: f.UID, GID: f.GID, Groups: user.Groups}
}
