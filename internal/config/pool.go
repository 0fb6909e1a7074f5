package config

// SocketName is the file, in the run directory of a pool, on which its schedd serves users' commands.
const SocketName = "schedd.sock"

// SystemRunDir is where the schedd of a host's own pool serves users' commands.
const SystemRunDir = "/run/roost"

// PoolDir is the directory of a personal pool: dir if it is not empty, else $ROOST_DIR, else ${XDG_STATE_HOME:-$HOME/.local/state}/roost.
// The result is absolute.
func PoolDir(dir string, getenv func(string) string) (string, error) { panic("not reached") }

// FindPool finds the schedd that a command is to talk to and returns its address for rpc.Dial ("unix:/path"). With dir or $ROOST_DIR it looks
// there and nowhere else; without, in the user's state directory as PoolDir has it, then in /run/roost. An error, of kind
// roost.Unavailable, says where it looked and how to start a pool. A socket that nobody answers any more is found all the same.
func FindPool(dir string, getenv func(string) string) (socket string, err error) {
	panic("not reached")
}

// Reach returns the address that a daemon with these listening addresses advertises: the first that other hosts can reach, or the first.
func Reach(listen []string) string { panic("not reached") }
