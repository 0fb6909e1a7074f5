/* Job templates. What has a form is checked when it is set. */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "roost_drmaa.h"

/* An attribute: its name, the form of its values, and the values that there are. */
struct attribute {
	const char *name, *form, *described;
	int number; /* the error for a value of another form */
};

#define TIME "^((([0-9]{2})?[0-9]{2}/)?[0-9]{2}/)?([0-9]{2} +)?[0-9]{1,2}:[0-9]{2}(:[0-9]{2})? *([+-][0-9]{2}:[0-9]{2})?$"
#define TIME_FORM "[[[[CC]YY/]MM/]DD] hh:mm[:ss] [{+|-}uu:uu]"
#define DURATION "^(([0-9]+:)?[0-9]+:)?[0-9]+$"
#define DURATION_FORM "[[hours:]minutes:]seconds"
#define PATH "^[^:]*:.+$"
#define PATH_FORM "[host]:path"
#define FORMAT DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT
#define VALUE DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE

static const struct attribute scalars[] = {
	{DRMAA_REMOTE_COMMAND, NULL, NULL, 0},
	{DRMAA_JS_STATE, "^drmaa_(active|hold)$", "drmaa_active or drmaa_hold", VALUE},
	{DRMAA_WD, NULL, NULL, 0},
	{DRMAA_JOB_CATEGORY, NULL, NULL, 0},
	{DRMAA_NATIVE_SPECIFICATION, NULL, NULL, 0},
	{DRMAA_BLOCK_EMAIL, "^[01yn]$", "0 or 1", VALUE},
	{DRMAA_START_TIME, TIME, TIME_FORM, FORMAT},
	{DRMAA_JOB_NAME, NULL, NULL, 0},
	{DRMAA_INPUT_PATH, PATH, PATH_FORM, FORMAT},
	{DRMAA_OUTPUT_PATH, PATH, PATH_FORM, FORMAT},
	{DRMAA_ERROR_PATH, PATH, PATH_FORM, FORMAT},
	{DRMAA_JOIN_FILES, "^[yn]$", "y or n", VALUE},
	{DRMAA_TRANSFER_FILES, "^[eio]*$", "any of e, i and o", VALUE},
	{DRMAA_DEADLINE_TIME, TIME, TIME_FORM, FORMAT},
	{DRMAA_WCT_HLIMIT, DURATION, DURATION_FORM, FORMAT},
	{DRMAA_WCT_SLIMIT, DURATION, DURATION_FORM, FORMAT},
	{DRMAA_DURATION_HLIMIT, DURATION, DURATION_FORM, FORMAT},
	{DRMAA_DURATION_SLIMIT, DURATION, DURATION_FORM, FORMAT},
};

static const struct attribute vectors[] = {
	{DRMAA_V_ARGV, NULL, NULL, 0},
	{DRMAA_V_ENV, "^[^= ]+=", "NAME=VALUE", FORMAT},
	{DRMAA_V_EMAIL, "^[^ ,]+$", "an address", FORMAT},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

struct drmaa_job_template_s {
	pthread_mutex_t lock;
	char *values[COUNT(scalars)];
	struct list lists[COUNT(vectors)];
};

static int find_attribute(const struct attribute *all, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].name, name) == 0)
			return (int)i;
	return -1;
}

static int check_value(const struct attribute *a, const char *value, struct diagnosis d)
{
	regex_t form;
	if (a->form == NULL)
		return DRMAA_ERRNO_SUCCESS;
	if (regcomp(&form, a->form, REG_EXTENDED | REG_NOSUB) != 0)
		return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	bool fits = regexec(&form, value, 0, NULL, 0) == 0;
	regfree(&form);
	return fits ? DRMAA_ERRNO_SUCCESS : fail(d, a->number, "%s: \"%s\" is not %s", a->name, value, a->described);
}

int drmaa_allocate_job_template(drmaa_job_template_t **jt, char *error_diagnosis, size_t error_diag_len)
{
	if (jt == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int number = session_enter(DIAGNOSIS);
	if (number != DRMAA_ERRNO_SUCCESS)
		return number;
	session_leave();
	if ((*jt = calloc(1, sizeof **jt)) == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_NO_MEMORY, NULL);
	pthread_mutex_init(&(*jt)->lock, NULL);
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_delete_job_template(drmaa_job_template_t *jt, char *error_diagnosis, size_t error_diag_len)
{
	if (jt == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	for (size_t i = 0; i < COUNT(scalars); i++)
		free(jt->values[i]);
	for (size_t i = 0; i < COUNT(vectors); i++)
		list_free(&jt->lists[i]);
	pthread_mutex_destroy(&jt->lock);
	free(jt);
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_set_attribute(drmaa_job_template_t *jt, const char *name, const char *value, char *error_diagnosis,
	size_t error_diag_len)
{
	if (jt == NULL || name == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int i = find_attribute(scalars, COUNT(scalars), name), number;
	if (i < 0)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, find_attribute(vectors, COUNT(vectors), name) < 0 ?
			"there is no attribute %s" : "%s is a vector attribute: drmaa_set_vector_attribute sets it", name);
	char *copy = NULL;
	if (value != NULL && *value) { /* an empty one unsets the attribute */
		if ((number = check_value(&scalars[i], value, DIAGNOSIS)) != DRMAA_ERRNO_SUCCESS)
			return number;
		if ((copy = strdup(value)) == NULL)
			return fail(DIAGNOSIS, DRMAA_ERRNO_NO_MEMORY, NULL);
	}
	pthread_mutex_lock(&jt->lock);
	free(jt->values[i]);
	jt->values[i] = copy;
	pthread_mutex_unlock(&jt->lock);
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_get_attribute(drmaa_job_template_t *jt, const char *name, char *value, size_t value_len,
	char *error_diagnosis, size_t error_diag_len)
{
	if (jt == NULL || name == NULL || value == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int i = find_attribute(scalars, COUNT(scalars), name);
	if (i < 0)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, "there is no attribute %s", name);
	pthread_mutex_lock(&jt->lock);
	copy_text(value, value_len, jt->values[i] != NULL ? jt->values[i] : "");
	pthread_mutex_unlock(&jt->lock);
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_set_vector_attribute(drmaa_job_template_t *jt, const char *name, const char *value[],
	char *error_diagnosis, size_t error_diag_len)
{
	if (jt == NULL || name == NULL || value == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int i = find_attribute(vectors, COUNT(vectors), name), number = DRMAA_ERRNO_SUCCESS;
	if (i < 0)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, find_attribute(scalars, COUNT(scalars), name) < 0 ?
			"there is no attribute %s" : "%s is no vector attribute: drmaa_set_attribute sets it", name);
	struct list list = {0};
	for (size_t n = 0; value[n] != NULL && number == DRMAA_ERRNO_SUCCESS; n++) {
		number = check_value(&vectors[i], value[n], DIAGNOSIS);
		if (number == DRMAA_ERRNO_SUCCESS && !list_add(&list, value[n]))
			number = fail(DIAGNOSIS, DRMAA_ERRNO_NO_MEMORY, NULL);
	}
	if (number != DRMAA_ERRNO_SUCCESS) {
		list_free(&list);
		return number;
	}
	pthread_mutex_lock(&jt->lock);
	list_free(&jt->lists[i]);
	jt->lists[i] = list;
	pthread_mutex_unlock(&jt->lock);
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_get_vector_attribute(drmaa_job_template_t *jt, const char *name, drmaa_attr_values_t **values,
	char *error_diagnosis, size_t error_diag_len)
{
	if (jt == NULL || name == NULL || values == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int i = find_attribute(vectors, COUNT(vectors), name);
	if (i < 0)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, "there is no vector attribute %s", name);
	drmaa_attr_values_t *copy = calloc(1, sizeof *copy);
	bool copied = copy != NULL;
	pthread_mutex_lock(&jt->lock);
	for (size_t n = 0; copied && n < jt->lists[i].count; n++)
		copied = list_add(&copy->list, jt->lists[i].items[n]);
	pthread_mutex_unlock(&jt->lock);
	if (!copied) {
		drmaa_release_attr_values(copy);
		return fail(DIAGNOSIS, DRMAA_ERRNO_NO_MEMORY, NULL);
	}
	*values = copy;
	return DRMAA_ERRNO_SUCCESS;
}

/* list_names lists attributes, in a session. */
static int list_names(const struct attribute *all, size_t count, drmaa_attr_names_t **values, struct diagnosis d)
{
	if (values == NULL)
		return fail(d, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	int number = session_enter(d);
	if (number != DRMAA_ERRNO_SUCCESS)
		return number;
	session_leave();
	drmaa_attr_names_t *names = calloc(1, sizeof *names);
	bool listed = names != NULL;
	for (size_t i = 0; listed && i < count; i++)
		listed = list_add(&names->list, all[i].name);
	if (!listed) {
		drmaa_release_attr_names(names);
		return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	}
	*values = names;
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_get_attribute_names(drmaa_attr_names_t **values, char *error_diagnosis, size_t error_diag_len)
{
	return list_names(scalars, COUNT(scalars), values, DIAGNOSIS);
}

int drmaa_get_vector_attribute_names(drmaa_attr_names_t **values, char *error_diagnosis, size_t error_diag_len)
{
	return list_names(vectors, COUNT(vectors), values, DIAGNOSIS);
}

void template_add(struct text *t, const drmaa_job_template_t *jt)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&jt->lock;
	const char *separator = "";
	pthread_mutex_lock(lock);
	text_add(t, "\"attributes\":{");
	for (size_t i = 0; i < COUNT(scalars); i++) {
		if (jt->values[i] == NULL)
			continue;
		text_addf(t, "%s\"%s\":", separator, scalars[i].name);
		text_add_json(t, jt->values[i]);
		separator = ",";
	}
	text_add(t, "},\"lists\":{");
	for (size_t i = 0; i < COUNT(vectors); i++) {
		text_addf(t, "%s\"%s\":[", i > 0 ? "," : "", vectors[i].name);
		for (size_t n = 0; n < jt->lists[i].count; n++) {
			text_add(t, n > 0 ? "," : "");
			text_add_json(t, jt->lists[i].items[n]);
		}
		text_add(t, "]");
	}
	text_add(t, "}");
	pthread_mutex_unlock(lock);
}
