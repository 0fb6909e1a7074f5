package dag

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/suggest"
)

// Config is what a CONFIG file says, as far as it concerns flows here. A pointer is nil
// where the file says nothing.
type Config struct {
	MaxJobs, MaxIdle, MaxPre, MaxPost *int

	AlwaysRunPost, DepthFirst, AppendVariables, AutoRescue *bool

	Warnings []string // about settings without effect
}

// knobs are the settings of DAGMan with an effect here (HTCondor's manual,
// Configuration File Entries for DAGMan).
func (c *Config) knobs() (numbers map[string]**int, switches map[string]**bool) {
	return map[string]**int{"DAGMAN_MAX_JOBS_SUBMITTED": &c.MaxJobs, "DAGMAN_MAX_JOBS_IDLE": &c.MaxIdle,
			"DAGMAN_MAX_PRE_SCRIPTS": &c.MaxPre, "DAGMAN_MAX_POST_SCRIPTS": &c.MaxPost},
		map[string]**bool{"DAGMAN_ALWAYS_RUN_POST": &c.AlwaysRunPost, "DAGMAN_SUBMIT_DEPTH_FIRST": &c.DepthFirst,
			"DAGMAN_DEFAULT_APPEND_VARS": &c.AppendVariables, "DAGMAN_AUTO_RESCUE": &c.AutoRescue}
}

// knobReasons say why other settings of DAGMan have no effect.
func knobReasons() map[string]string {
	const (
		noLog     = "no process watches a log file: the queue itself knows how the jobs go"
		noSubmit  = "the queue makes the jobs itself, and tries again where there is no room"
		noFiles   = "there is no condor_dagman process with files of its own"
		noPurpose = "it has no counterpart"
	)
	reasons := map[string]string{}
	for reason, names := range map[string]string{
		noLog: "USER_LOG_SCAN_INTERVAL LOG_ON_NFS_IS_ERROR ALLOW_ANY_NODE_NAME_CHARACTERS DEFAULT_NODE_LOG " +
			"ALLOW_EVENTS ALWAYS_USE_NODE_LOG PUT_FAILED_JOBS_ON_HOLD PENDING_REPORT_INTERVAL",
		noSubmit: "MAX_SUBMITS_PER_INTERVAL MAX_SUBMIT_ATTEMPTS SUBMIT_DELAY USE_DIRECT_SUBMIT CONDOR_SUBMIT_EXE " +
			"USE_CONDOR_SUBMIT REMOVE_JOBS_AFTER_LIMIT_CHANGE PROHIBIT_MULTI_JOBS SUPPRESS_JOB_LOGS USE_STRICT " +
			"ABORT_ON_SCARY_SUBMIT CONDOR_RM_EXE ABORT_DUPLICATES REMOVE_NODE_JOBS",
		noFiles: "VERBOSITY DEBUG DEBUG_CACHE_ENABLE DEBUG_CACHE_SIZE MAX_DAGMAN_LOG ON_EXIT_REMOVE COPY_TO_SPOOL " +
			"INSERT_SUB_FILE OLD_RESCUE WRITE_PARTIAL_RESCUE RESET_RETRIES_UPON_RESCUE MAX_RESCUE_NUM " +
			"RETRY_SUBMIT_FIRST RETRY_NODE_FIRST GENERATE_SUBDAG_SUBMITS CONFIG_FILE MANAGER_JOB_APPEND_GETENV",
		noPurpose: "HOLD_CLAIM_TIME AGGRESSIVE_SUBMIT STARTUP_CYCLE_DETECT METRICS_FILE_VERSION " +
			"REPORT_GRAPH_METRICS USE_SHARED_PORT MAX_JOB_HOLDS MAX_HOLD_SCRIPTS USE_JOIN_NODES INHERIT_ATTRS " +
			"INHERIT_ATTRS_PREFIX MUNGE_NODE_NAMES DEFAULT_PRIORITY CHECK_QUEUE_INTERVAL QUEUE_UPDATE_INTERVAL " +
			"SUPPRESS_NOTIFICATION NODE_RECORD_INFO RECORD_MACHINE_ATTRS",
	} {
		for name := range strings.FieldsSeq(names) {
			reasons["DAGMAN_"+name] = reason
		}
	}
	return reasons
}

// maxConfig bounds the bytes of a CONFIG file.
const maxConfig = 1 << 20

// ReadConfig reads a CONFIG file. Its errors name the file and the line.
func ReadConfig(files FileReader, name string) (*Config, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &Config{}
	lines := bufio.NewScanner(io.LimitReader(f, maxConfig))
	var text string
	number, first := 0, 0
	for lines.Scan() {
		number++
		if text == "" {
			first = number
		}
		part, more := strings.CutSuffix(lines.Text(), "\\")
		if text += part; more {
			continue
		}
		if err := c.readLine(text, fmt.Sprintf("%s:%d", name, first)); err != nil {
			return nil, err
		}
		text = ""
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, c.readLine(text, fmt.Sprintf("%s:%d", name, first))
}

// readLine reads a line of a CONFIG file.
func (c *Config) readLine(text, place string) error {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasPrefix(text, "#") {
		return nil
	}
	key, value, ok := strings.Cut(text, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" || len(strings.Fields(key)) != 1 {
		c.warn(place, quote(text)+" has no effect: only lines NAME = VALUE are read")
		return nil
	}
	numbers, switches := c.knobs()
	upper := strings.ToUpper(key)
	switch reason, isKnown := knobReasons()[upper]; {
	case numbers[upper] != nil:
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return fmt.Errorf("%s: %s is %s, and is to be a number from 0 on", place, key, quote(value))
		}
		*numbers[upper] = &n
	case switches[upper] != nil:
		on, err := parseSwitch(value)
		if err != nil {
			return fmt.Errorf("%s: %s is %s, and is to be true or false", place, key, quote(value))
		}
		*switches[upper] = &on
	case isKnown:
		c.warn(place, key+" has no effect: "+reason)
	default:
		known := make([]string, 0, len(numbers)+len(switches))
		for name := range numbers {
			known = append(known, name)
		}
		for name := range switches {
			known = append(known, name)
		}
		cure := ""
		if near := suggest.Nearest(upper, known); near != "" {
			cure = "; did you mean " + near + "?"
		}
		c.warn(place, key+" has no effect: it is no setting of DAGMan that is known here"+cure)
	}
	return nil
}

func (c *Config) warn(place, text string) { c.Warnings = append(c.Warnings, place+": "+text) }

// errNoSwitch says that a text is neither true nor false.
var errNoSwitch = errors.New("it is neither true nor false")

func parseSwitch(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true", "yes", "t", "1":
		return true, nil
	case "false", "no", "f", "0":
		return false, nil
	}
	return false, errNoSwitch
}
