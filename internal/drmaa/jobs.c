/* Submitting jobs, acting on them, and their states. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "roost_drmaa.h"

/* submit submits a template; range is NULL, or the indexes of a bulk. Asking again with
 * the same key makes no second job. */
static struct json *submit(const drmaa_job_template_t *jt, const int *range, int *number, struct diagnosis d)
{
	static const char *const arguments[] = {"qsub", "--drmaa", NULL};
	unsigned char bytes[16] = {0};
	struct text t = {0};
	int status;
	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
		*number = fail(d, DRMAA_ERRNO_INTERNAL_ERROR, "there are no random numbers");
		return NULL;
	}
	text_add(&t, "{\"v\":1,\"key\":\"drmaa-");
	for (size_t i = 0; i < sizeof bytes; i++)
		text_addf(&t, "%02x", bytes[i]);
	text_add(&t, "\",");
	template_add(&t, jt);
	if (range != NULL)
		text_addf(&t, ",\"bulk\":{\"first\":%d,\"last\":%d,\"step\":%d}", range[0], range[1], range[2]);
	text_add(&t, "}");
	if (t.failed) {
		text_free(&t);
		*number = fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
		return NULL;
	}
	struct json *answer = call_document(arguments, t.data, &status, d);
	text_free(&t);
	if (answer == NULL) {
		*number = status == 65 || status == 64 ? DRMAA_ERRNO_DENIED_BY_DRM : status_error(status);
		return NULL;
	}
	if (json_member(answer, "drmaa_error") != NULL) {
		*number = fail(d, (int)json_number(answer, "drmaa_error"), "%s", json_text(answer, "error"));
		json_free(answer);
		return NULL;
	}
	*number = DRMAA_ERRNO_SUCCESS;
	return answer;
}

/* register_jobs adds submitted jobs to the session. */
static int register_jobs(const struct list *ids, struct diagnosis d)
{
	int number = DRMAA_ERRNO_SUCCESS;
	pthread_mutex_lock(&library_lock);
	for (size_t i = 0; i < ids->count; i++)
		if (session_add(ids->items[i], true) == NULL)
			number = fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	session_record('+', ids);
	pthread_mutex_unlock(&library_lock);
	return number;
}

/* session_end_use ends what session_use began: work in a session without the lock. */
static void session_end_use(void)
{
	pthread_mutex_lock(&library_lock);
	session_leave();
}

static int session_use(struct diagnosis d)
{
	int number = session_enter(d);
	if (number == DRMAA_ERRNO_SUCCESS)
		pthread_mutex_unlock(&library_lock);
	return number;
}

int drmaa_run_job(char *job_id, size_t job_id_len, const drmaa_job_template_t *jt, char *error_diagnosis,
	size_t error_diag_len)
{
	struct diagnosis d = DIAGNOSIS;
	if (job_id == NULL || jt == NULL)
		return fail(d, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int number = session_use(d);
	if (number != DRMAA_ERRNO_SUCCESS)
		return number;
	struct json *answer = submit(jt, NULL, &number, d);
	if (answer != NULL) {
		struct list ids = {0};
		copy_text(job_id, job_id_len, json_text(answer, "job"));
		number = list_add(&ids, json_text(answer, "job")) ? register_jobs(&ids, d) : DRMAA_ERRNO_NO_MEMORY;
		list_free(&ids);
	}
	json_free(answer);
	session_end_use();
	return number;
}

int drmaa_run_bulk_jobs(drmaa_job_ids_t **jobids, const drmaa_job_template_t *jt, int start, int end, int incr,
	char *error_diagnosis, size_t error_diag_len)
{
	struct diagnosis d = DIAGNOSIS;
	int range[3] = {start, end, incr};
	if (jobids == NULL || jt == NULL)
		return fail(d, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int number = session_use(d);
	if (number != DRMAA_ERRNO_SUCCESS)
		return number;
	struct json *answer = submit(jt, range, &number, d);
	drmaa_job_ids_t *found = answer != NULL ? calloc(1, sizeof *found) : NULL;
	if (answer != NULL) {
		const struct json *ids = json_member(answer, "ids");
		bool added = found != NULL;
		for (const struct json *id = ids == NULL ? NULL : ids->first; added && id != NULL; id = id->next)
			added = list_add(&found->list, id->type == JSON_STRING ? id->string : "");
		number = added ? register_jobs(&found->list, d) : fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	}
	json_free(answer);
	session_end_use();
	if (number == DRMAA_ERRNO_SUCCESS)
		*jobids = found;
	else
		drmaa_release_job_ids(found);
	return number;
}

/* ask_state asks for the state of one job. */
static int ask_state(const char *id, int *state, struct diagnosis d)
{
	if (id[0] < '0' || id[0] > '9' || strpbrk(id, " \t\n,*@") != NULL || strlen(id) > 200)
		return fail(d, DRMAA_ERRNO_INVALID_JOB, "\"%.100s\" is no id of a job", id);
	pthread_mutex_lock(&library_lock);
	struct job *j = session_find(id);
	bool known = j != NULL && j->state != 0;
	if (known)
		*state = j->state;
	pthread_mutex_unlock(&library_lock);
	if (known)
		return DRMAA_ERRNO_SUCCESS;
	struct list one = {0};
	int number = list_add(&one, id) ? refresh(&one, state, d) : fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	list_free(&one);
	return number;
}

int drmaa_job_ps(const char *job_id, int *remote_ps, char *error_diagnosis, size_t error_diag_len)
{
	if (job_id == NULL || remote_ps == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int number = session_use(DIAGNOSIS);
	if (number != DRMAA_ERRNO_SUCCESS)
		return number;
	*remote_ps = DRMAA_PS_UNDETERMINED;
	number = ask_state(job_id, remote_ps, DIAGNOSIS);
	session_end_use();
	return number;
}

/* What an action needs: the command, the error in another state, and whether the state
 * allows it. */
static const struct action {
	const char *command, *option;
	int inconsistent;
} actions[] = {
	[DRMAA_CONTROL_SUSPEND] = {"suspend", NULL, DRMAA_ERRNO_SUSPEND_INCONSISTENT_STATE},
	[DRMAA_CONTROL_RESUME] = {"resume", NULL, DRMAA_ERRNO_RESUME_INCONSISTENT_STATE},
	[DRMAA_CONTROL_HOLD] = {"hold", "--yes", DRMAA_ERRNO_HOLD_INCONSISTENT_STATE},
	[DRMAA_CONTROL_RELEASE] = {"release", NULL, DRMAA_ERRNO_RELEASE_INCONSISTENT_STATE},
	[DRMAA_CONTROL_TERMINATE] = {"rm", "--yes", DRMAA_ERRNO_INVALID_JOB},
};

static bool allows(int state, int action)
{
	switch (action) {
	case DRMAA_CONTROL_SUSPEND:
		return state == DRMAA_PS_RUNNING || state == DRMAA_PS_SYSTEM_SUSPENDED;
	case DRMAA_CONTROL_RESUME:
		return state == DRMAA_PS_USER_SUSPENDED || state == DRMAA_PS_USER_SYSTEM_SUSPENDED;
	case DRMAA_CONTROL_HOLD:
		return state == DRMAA_PS_QUEUED_ACTIVE;
	case DRMAA_CONTROL_RELEASE:
		return state >= DRMAA_PS_SYSTEM_ON_HOLD && state <= DRMAA_PS_USER_SYSTEM_ON_HOLD;
	}
	return state != DRMAA_PS_DONE && state != DRMAA_PS_FAILED;
}

/* list_session lists the jobs of the session that have not ended. */
static bool list_session(struct list *ids)
{
	bool listed = true;
	pthread_mutex_lock(&library_lock);
	for (size_t i = 0; listed && i < session.count; i++)
		if (session.jobs[i]->ours && session.jobs[i]->phase == PHASE_LIVE)
			listed = list_add(ids, session.jobs[i]->id);
	pthread_mutex_unlock(&library_lock);
	return listed;
}

/* act runs the command of an action on jobs. With lenient, jobs whose state does not
 * allow it, or that have ended meanwhile, stay as they are. */
static int act(const struct action *a, const struct list *ids, bool lenient, struct diagnosis d)
{
	const char **arguments = calloc(ids->count + 5, sizeof *arguments);
	int status, number = DRMAA_ERRNO_SUCCESS;
	size_t n = 0;
	if (arguments == NULL)
		return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	arguments[n++] = a->command;
	arguments[n++] = "--json";
	if (a->option != NULL)
		arguments[n++] = a->option;
	arguments[n++] = "--";
	for (size_t i = 0; i < ids->count; i++)
		arguments[n++] = ids->items[i];
	struct json *answer = call_document(arguments, NULL, &status, d);
	free(arguments);
	if (answer == NULL)
		return status_error(status);
	const struct json *results = json_member(answer, "results");
	for (const struct json *r = results == NULL ? NULL : results->first; r != NULL; r = r->next) {
		int code = (int)json_number(r, "code");
		if (*json_text(r, "error") == 0 || (lenient && (code == 35 || code == 75 || code == 68)))
			continue;
		number = fail(d, code == 75 ? a->inconsistent : status_error(code), "%s", json_text(r, "error"));
	}
	json_free(answer);
	return number;
}

int drmaa_control(const char *jobid, int action, char *error_diagnosis, size_t error_diag_len)
{
	struct diagnosis d = DIAGNOSIS;
	struct list ids = {0};
	int state = DRMAA_PS_UNDETERMINED;
	if (jobid == NULL || action < 0 || (size_t)action >= sizeof actions / sizeof *actions)
		return fail(d, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int number = session_use(d);
	if (number != DRMAA_ERRNO_SUCCESS)
		return number;
	bool all = strcmp(jobid, DRMAA_JOB_IDS_SESSION_ALL) == 0;
	if (!(all ? list_session(&ids) : list_add(&ids, jobid)))
		number = fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	else if (!all && (number = ask_state(jobid, &state, d)) == DRMAA_ERRNO_SUCCESS && !allows(state, action))
		number = fail(d, actions[action].inconsistent, NULL);
	if (number == DRMAA_ERRNO_SUCCESS && ids.count > 0)
		number = act(&actions[action], &ids, all, d);
	list_free(&ids);
	session_end_use();
	return number;
}

/* --- what stat says */

static int give(int *to, int value, struct diagnosis d)
{
	if (to == NULL)
		return fail(d, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	*to = value;
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_wifexited(int *exited, int stat, char *error_diagnosis, size_t error_diag_len)
{
	return give(exited, (stat & STAT_EXITED) != 0, DIAGNOSIS);
}

int drmaa_wexitstatus(int *exit_status, int stat, char *error_diagnosis, size_t error_diag_len)
{
	return give(exit_status, STAT_CODE(stat), DIAGNOSIS);
}

int drmaa_wifsignaled(int *signaled, int stat, char *error_diagnosis, size_t error_diag_len)
{
	return give(signaled, (stat & STAT_SIGNALED) != 0, DIAGNOSIS);
}

int drmaa_wcoredump(int *core_dumped, int stat, char *error_diagnosis, size_t error_diag_len)
{
	return give(core_dumped, (stat & STAT_CORE) != 0, DIAGNOSIS);
}

int drmaa_wifaborted(int *aborted, int stat, char *error_diagnosis, size_t error_diag_len)
{
	return give(aborted, (stat & STAT_ABORTED) != 0, DIAGNOSIS);
}

int drmaa_wtermsig(char *signal, size_t signal_len, int stat, char *error_diagnosis, size_t error_diag_len)
{
	static const struct { int number; const char *name; } names[] = {
		{SIGHUP, "SIGHUP"}, {SIGINT, "SIGINT"}, {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"}, {SIGTRAP, "SIGTRAP"},
		{SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"},
		{SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"}, {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
		{SIGCHLD, "SIGCHLD"}, {SIGCONT, "SIGCONT"}, {SIGSTOP, "SIGSTOP"}, {SIGTSTP, "SIGTSTP"}, {SIGTTIN, "SIGTTIN"},
		{SIGTTOU, "SIGTTOU"}, {SIGURG, "SIGURG"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
		{SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"}, {SIGWINCH, "SIGWINCH"}, {SIGIO, "SIGIO"}, {SIGPWR, "SIGPWR"},
		{SIGSYS, "SIGSYS"},
	};
	char other[16];
	if (signal == NULL || !(stat & STAT_SIGNALED))
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, signal == NULL ? NULL : "the job was not ended by a signal");
	snprintf(other, sizeof other, "SIG%d", STAT_SIGNAL(stat));
	const char *name = other;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].number == STAT_SIGNAL(stat))
			name = names[i].name;
	copy_text(signal, signal_len, name);
	return DRMAA_ERRNO_SUCCESS;
}
