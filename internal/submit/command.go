package submit

// Request is what the flags of a command say about a job; text is in the same form as in a job file, empty for unset.
type Request struct {
	Name         string
	Directory    string
	CPUs         string // "1.5" or "500m"
	Memory       string // "4GiB"
	Disk         string
	GPUs         int
	Walltime     string
	Band         string
	Priority     int
	Group        string
	Requirements string // a ClassAd expression
	Rank         string
	Count        int // 0: one task that is not an array
	Retries      int
	MaxRunning   int
	Stdin        string
	Stdout       string
	Stderr       string
	JoinOutput   bool
	Transfer     string
	Inputs       []string
	Outputs      []string
	Environment  []string // "NAME=value"
	GetEnv       bool     // take the whole environment along
	Labels       map[string]string
	Notice       string
	Lease        string
	StartAfter   string
	DependsOn    []string // "123.host" or "afterany:123.host"
	Hold         bool
}

// Command returns the job that runs argv. Its errors wrap roost.Invalid or roost.NoInput.
func Command(argv []string, request Request, opts Options) (Job, error) { return Job{}, nil }
