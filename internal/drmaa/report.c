/* What a pool tells of jobs, in the terms of DRMAA; see JOB in roost-json(7). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roost_drmaa.h"

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static bool has_ended(const struct json *record)
{
	const char *state = json_text(record, "state");
	return is(state, "completed") || is(state, "failed") || is(state, "removed");
}

static bool held_by_roost(const struct json *record)
{
	return is(json_text(record, "state"), "held") && is(json_text(record, "held_by"), "roost");
}

/* never_ran reports whether the program of a job was never started. */
static bool never_ran(const struct json *record)
{
	const struct json *end = json_member(record, "exit");
	const char *cause = json_text(end, "cause");
	if (is(cause, "launch") || is(cause, "refused"))
		return true;
	return *json_text(record, "started") == 0;
}

int report_stat(const struct json *record)
{
	const struct json *end = json_member(record, "exit");
	int signal = (int)json_number(end, "signal"), code = (int)json_number(end, "code");
	if (never_ran(record))
		return STAT_ABORTED;
	if (signal == 0 && is(json_text(record, "state"), "removed") && (end == NULL || is(json_text(end, "cause"), "removed")))
		signal = code > 128 && code < 128 + 65 ? code - 128 : end == NULL || code == 0 ? SIGKILL : 0;
	if (signal > 0)
		return STAT_SIGNALED | (signal & 0xff) << 8 | (json_number(end, "core") != 0 ? STAT_CORE : 0);
	return STAT_EXITED | (code & 0xff);
}

int report_state(const struct json *record, bool ours)
{
	const char *state = json_text(record, "state"), *by = json_text(record, "suspended_by");
	if (has_ended(record)) {
		int stat = report_stat(record);
		return stat & STAT_EXITED && !is(state, "removed") ? DRMAA_PS_DONE : DRMAA_PS_FAILED;
	}
	if (is(state, "held")) {
		if (held_by_roost(record))
			return ours ? DRMAA_PS_FAILED : DRMAA_PS_SYSTEM_ON_HOLD;
		return is(json_text(record, "held_by"), "operator") ? DRMAA_PS_SYSTEM_ON_HOLD : DRMAA_PS_USER_ON_HOLD;
	}
	if (is(state, "suspended") || json_number(record, "suspended") != 0) {
		if (is(by, "owner,user"))
			return DRMAA_PS_USER_SYSTEM_SUSPENDED;
		return is(by, "owner") ? DRMAA_PS_SYSTEM_SUSPENDED : DRMAA_PS_USER_SUSPENDED;
	}
	if (is(state, "idle") || is(state, "blocked") || is(state, "starting"))
		return DRMAA_PS_QUEUED_ACTIVE;
	if (is(state, "running") || is(state, "exiting"))
		return DRMAA_PS_RUNNING;
	return DRMAA_PS_UNDETERMINED;
}

/* add_time adds a time as seconds since 1970. */
static bool add_time(struct list *usage, const char *name, const char *text)
{
	struct tm tm = {0};
	char line[64];
	if (sscanf(text, "%d-%d-%dT%d:%d:%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
		return true;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	snprintf(line, sizeof line, "%s=%lld", name, (long long)timegm(&tm));
	return list_add(usage, line);
}

/* add_number adds a number with three decimals at most. A point separates them in every
 * locale. */
static bool add_number(struct list *usage, const char *name, double value)
{
	char line[96];
	long long thousandths = (long long)(value * 1000 + 0.5);
	if (thousandths % 1000 == 0)
		snprintf(line, sizeof line, "%s=%lld", name, thousandths / 1000);
	else
		snprintf(line, sizeof line, "%s=%lld.%03lld", name, thousandths / 1000, thousandths % 1000);
	return list_add(usage, line);
}

static bool add_word(struct list *usage, const char *name, const char *value)
{
	struct text t = {0};
	if (*value == 0)
		return true;
	text_addf(&t, "%s=%s", name, value);
	bool added = !t.failed && list_add(usage, t.data);
	text_free(&t);
	return added;
}

bool report_usage(const struct json *record, struct list *usage)
{
	const struct json *end = json_member(record, "exit");
	double user = json_number(end, "user_cpu_seconds"), system = json_number(end, "system_cpu_seconds");
	bool added = add_time(usage, "submission_time", json_text(record, "submitted")) &&
		add_time(usage, "start_time", json_text(record, "started")) &&
		add_time(usage, "end_time", json_text(record, "ended")) && add_word(usage, "hosts", json_text(record, "node")) &&
		add_word(usage, "queue", json_text(record, "queue"));
	if (!added || end == NULL)
		return added;
	return add_number(usage, "exit_status", json_number(end, "code")) &&
		add_number(usage, "signal", json_number(end, "signal")) &&
		add_number(usage, "wallclock", json_number(end, "wall_seconds")) && add_number(usage, "cpu", user + system) &&
		add_number(usage, "user_cpu", user) && add_number(usage, "system_cpu", system) &&
		add_number(usage, "max_rss", json_number(end, "max_rss_bytes")) &&
		add_number(usage, "mem", json_number(end, "peak_memory_bytes")) &&
		add_number(usage, "read", json_number(end, "read_bytes")) &&
		add_number(usage, "written", json_number(end, "written_bytes")) && add_word(usage, "cause", json_text(end, "cause"));
}

/* plain_id writes the id by which a task is known in the session: a job of one task has
 * none of its own. */
static void plain_id(const struct json *record, char *id, size_t room)
{
	const char *full = json_text(record, "id"), *open = strchr(full, '['), *close = strchr(full, ']');
	if (open != NULL && close != NULL && json_number(record, "array") == 0)
		snprintf(id, room, "%.*s%s", (int)(open - full), full, close + 1);
	else
		snprintf(id, room, "%s", full);
}

/* apply_record ends a job of the session that has ended. It adds those that Roost holds
 * to stuck. library_lock is held. */
static bool apply_record(const struct json *record, struct list *stuck)
{
	char id[256];
	plain_id(record, id, sizeof id);
	struct job *j = session_find(id);
	if (j == NULL || j->phase != PHASE_LIVE)
		return true;
	if (j->ours && held_by_roost(record)) {
		struct list usage = {0};
		bool added = report_usage(record, &usage) && add_word(&usage, "reason", json_text(record, "reason")) &&
			list_add(stuck, id);
		session_end_job(j, DRMAA_PS_FAILED, STAT_ABORTED, &usage);
		return added;
	}
	if (!has_ended(record))
		return true;
	struct list usage = {0};
	bool added = report_usage(record, &usage) && add_word(&usage, "reason", json_text(record, "reason"));
	session_end_job(j, report_state(record, j->ours), report_stat(record), &usage);
	return added;
}

/* remove_stuck removes jobs that Roost holds: their end has been reported. */
static void remove_stuck(const struct list *stuck)
{
	const char **arguments = calloc(stuck->count + 8, sizeof *arguments);
	int status;
	struct diagnosis nobody = {0};
	size_t n = 0;
	if (arguments == NULL)
		return;
	for (const char *const *word = (const char *const[]){"rm", "--json", "--yes", "--reason",
		"it was held, and DRMAA reports that as its end", "--", NULL}; *word != NULL; word++)
		arguments[n++] = *word;
	for (size_t i = 0; i < stuck->count; i++)
		arguments[n++] = stuck->items[i];
	json_free(call_document(arguments, NULL, &status, nobody));
	free(arguments);
}

int refresh(const struct list *ids, int *state, struct diagnosis d)
{
	static const char *const query[] = {"jobs", "--json", "--tasks", "--limit", "0", "--ids", "-", NULL};
	struct text input = {0};
	struct list stuck = {0};
	int status, number = DRMAA_ERRNO_SUCCESS;
	for (size_t i = 0; i < ids->count; i++)
		text_addf(&input, "%s\n", ids->items[i]);
	if (input.failed)
		return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	struct json *answer = call_document(query, input.data, &status, d);
	text_free(&input);
	if (answer == NULL)
		return status_error(status);
	pthread_mutex_lock(&library_lock);
	const struct json *jobs = json_member(answer, "jobs"), *unknown = json_member(answer, "unknown");
	for (const struct json *r = jobs == NULL ? NULL : jobs->first; r != NULL; r = r->next) {
		struct job *j;
		char id[256];
		plain_id(r, id, sizeof id);
		j = session_find(id);
		if (state != NULL)
			*state = report_state(r, j != NULL && j->ours);
		if (!apply_record(r, &stuck))
			number = fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	}
	for (const struct json *u = unknown == NULL ? NULL : unknown->first; u != NULL; u = u->next) {
		struct job *j = u->type == JSON_STRING ? session_find(u->string) : NULL;
		if (j != NULL && j->phase == PHASE_LIVE) {
			j->phase = PHASE_UNKNOWN;
			session.live--;
		}
		number = fail(d, DRMAA_ERRNO_INVALID_JOB, "%s: there is no such job", u->type == JSON_STRING ? u->string : "");
	}
	pthread_cond_broadcast(&library_changed);
	pthread_mutex_unlock(&library_lock);
	json_free(answer);
	if (stuck.count > 0)
		remove_stuck(&stuck);
	list_free(&stuck);
	return number;
}
