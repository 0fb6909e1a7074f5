package peer

// Attributes about guests. A machine that accepts tasks of guests says so in its ad, and
// the ad of a guest's request says of which pool it is.
const (
	AttrAcceptsGuests = "AcceptsGuests"
	AttrGuestOf       = "GuestOf"
)

// GuestUser returns the name at the host of a user of a guest pool. No user of the host
// has such a name.
func GuestUser(user, pool string) string { return user + "@" + pool }

// GuestGroup returns the accounting group at the host of all users of a guest pool.
func GuestGroup(pool string) string { return "peer:" + pool }
