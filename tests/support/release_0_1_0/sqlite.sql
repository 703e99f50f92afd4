PRAGMA application_id = 1097618038;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE cohort_snapshot (
	id INTEGER NOT NULL, 
	content_hash TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	source_format TEXT NOT NULL, 
	mapping_name TEXT NOT NULL, 
	site_timezone TEXT NOT NULL, 
	calendar_is_shifted BOOLEAN NOT NULL, 
	simulated BOOLEAN NOT NULL, 
	import_summary JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_cohort_snapshot PRIMARY KEY (id), 
	CONSTRAINT uq_cohort_snapshot_content_hash UNIQUE (content_hash)
);
CREATE TABLE instance (
	id INTEGER NOT NULL, 
	snapshot_id INTEGER NOT NULL, 
	row_index INTEGER NOT NULL, 
	patient_id TEXT NOT NULL, 
	stay_id INTEGER NOT NULL, 
	snapshot_at DATETIME NOT NULL, 
	day_of_stay INTEGER NOT NULL, 
	unit TEXT NOT NULL, 
	age_years DOUBLE, 
	sex TEXT NOT NULL, 
	window_hours DOUBLE NOT NULL, 
	CONSTRAINT pk_instance PRIMARY KEY (id), 
	CONSTRAINT fk_instance_snapshot_id_cohort_snapshot FOREIGN KEY(snapshot_id) REFERENCES cohort_snapshot (id), 
	CONSTRAINT uq_instance_snapshot_id_row_index UNIQUE (snapshot_id, row_index)
);
CREATE INDEX ix_instance_snapshot_id_patient_id ON instance (snapshot_id, patient_id);
CREATE TABLE task (
	id INTEGER NOT NULL, 
	snapshot_id INTEGER NOT NULL, 
	column_index INTEGER NOT NULL, 
	task_key TEXT NOT NULL, 
	name TEXT NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	order_group TEXT NOT NULL, 
	CONSTRAINT pk_task PRIMARY KEY (id), 
	CONSTRAINT fk_task_snapshot_id_cohort_snapshot FOREIGN KEY(snapshot_id) REFERENCES cohort_snapshot (id), 
	CONSTRAINT uq_task_snapshot_id_column_index UNIQUE (snapshot_id, column_index), 
	CONSTRAINT uq_task_snapshot_id_task_key UNIQUE (snapshot_id, task_key), 
	CONSTRAINT ck_task_kind CHECK (kind IN ('LAB_ORDER', 'MEDICATION'))
);
CREATE TABLE task_result (
	run_id INTEGER NOT NULL, 
	task_id INTEGER NOT NULL, 
	scorer TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	n_past INTEGER NOT NULL, 
	n_past_positive INTEGER NOT NULL, 
	score BLOB, 
	scaled_score BLOB, 
	soft_label BLOB, 
	support BLOB, 
	feature_columns BLOB, 
	feature_weights BLOB, 
	score_histogram JSON, 
	scaled_histogram JSON, 
	scaling JSON NOT NULL, 
	diagnostics JSON NOT NULL, 
	CONSTRAINT pk_task_result PRIMARY KEY (run_id, task_id, scorer), 
	CONSTRAINT fk_task_result_run_id_scoring_run FOREIGN KEY(run_id) REFERENCES scoring_run (id), 
	CONSTRAINT fk_task_result_task_id_task FOREIGN KEY(task_id) REFERENCES task (id)
);
CREATE INDEX ix_task_result_task_id ON task_result (task_id);
CREATE TABLE person (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	role VARCHAR(20) NOT NULL, 
	simulated BOOLEAN NOT NULL, 
	active BOOLEAN NOT NULL, 
	created_at DATETIME NOT NULL, all_units BOOLEAN DEFAULT 1 NOT NULL, 
	CONSTRAINT pk_person PRIMARY KEY (id), 
	CONSTRAINT uq_person_name UNIQUE (name), 
	CONSTRAINT ck_person_role CHECK (role IN ('viewer', 'reviewer', 'adjudicator', 'coordinator', 'researcher', 'administrator'))
);
CREATE TABLE score_seen (
	person_id INTEGER NOT NULL, 
	patient_id TEXT NOT NULL, 
	snapshot_at DATETIME NOT NULL, 
	task_key TEXT NOT NULL, 
	first_seen_at DATETIME NOT NULL, 
	CONSTRAINT pk_score_seen PRIMARY KEY (person_id, patient_id, snapshot_at, task_key), 
	CONSTRAINT fk_score_seen_person_id_person FOREIGN KEY(person_id) REFERENCES person (id)
);
CREATE TABLE study (
	id INTEGER NOT NULL, 
	slug TEXT NOT NULL, 
	title TEXT NOT NULL, 
	run_id INTEGER NOT NULL, 
	status VARCHAR(20) NOT NULL, 
	rubric_version INTEGER NOT NULL, 
	n_slots INTEGER NOT NULL, 
	order_seed BIGINT NOT NULL, 
	hold_hours DOUBLE NOT NULL, 
	simulated BOOLEAN NOT NULL, 
	is_calibration BOOLEAN NOT NULL, 
	selection_design JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	opened_at DATETIME, 
	locked_at DATETIME, is_open_panel BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_study PRIMARY KEY (id), 
	CONSTRAINT ck_study_some_slot CHECK (n_slots >= 1), 
	CONSTRAINT fk_study_run_id_scoring_run FOREIGN KEY(run_id) REFERENCES scoring_run (id), 
	CONSTRAINT uq_study_slug UNIQUE (slug), 
	CONSTRAINT ck_study_status CHECK (status IN ('draft', 'open', 'locked'))
);
CREATE TABLE rubric (
	study_id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	question TEXT NOT NULL, 
	guidelines TEXT NOT NULL, 
	answer_texts JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_rubric PRIMARY KEY (study_id, version), 
	CONSTRAINT fk_rubric_study_id_study FOREIGN KEY(study_id) REFERENCES study (id)
);
CREATE TABLE study_reader (
	study_id INTEGER NOT NULL, 
	person_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	CONSTRAINT pk_study_reader PRIMARY KEY (study_id, person_id), 
	CONSTRAINT fk_study_reader_person_id_person FOREIGN KEY(person_id) REFERENCES person (id), 
	CONSTRAINT fk_study_reader_study_id_study FOREIGN KEY(study_id) REFERENCES study (id), 
	CONSTRAINT uq_study_reader_study_id_number UNIQUE (study_id, number)
);
CREATE TABLE study_case (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	instance_id INTEGER NOT NULL, 
	task_id INTEGER NOT NULL, 
	repeat_number INTEGER NOT NULL, 
	patient_id TEXT NOT NULL, 
	snapshot_at DATETIME NOT NULL, 
	task_key TEXT NOT NULL, 
	decision VARCHAR(20) NOT NULL, 
	stratum TEXT NOT NULL, 
	stratum_size INTEGER NOT NULL, 
	inclusion_probability DOUBLE NOT NULL, 
	CONSTRAINT pk_study_case PRIMARY KEY (id), 
	CONSTRAINT ck_study_case_probability CHECK (inclusion_probability > 0 AND inclusion_probability <= 1), 
	CONSTRAINT fk_study_case_instance_id_instance FOREIGN KEY(instance_id) REFERENCES instance (id), 
	CONSTRAINT fk_study_case_study_id_study FOREIGN KEY(study_id) REFERENCES study (id), 
	CONSTRAINT fk_study_case_task_id_task FOREIGN KEY(task_id) REFERENCES task (id), 
	CONSTRAINT uq_study_case_study_id_instance_id_task_id_repeat_number UNIQUE (study_id, instance_id, task_id, repeat_number), 
	CONSTRAINT uq_study_case_study_id_number UNIQUE (study_id, number), 
	CONSTRAINT ck_study_case_decision CHECK (decision IN ('omission', 'commission'))
);
CREATE INDEX ix_study_case_instance_id ON study_case (instance_id);
CREATE INDEX ix_study_case_patient_id_snapshot_at_task_key ON study_case (patient_id, snapshot_at, task_key);
CREATE INDEX ix_study_case_task_id ON study_case (task_id);
CREATE TABLE case_score (
	case_id INTEGER NOT NULL, 
	scorer TEXT NOT NULL, 
	score DOUBLE NOT NULL, 
	scaled_score DOUBLE NOT NULL, 
	soft_label DOUBLE, 
	support DOUBLE, 
	CONSTRAINT pk_case_score PRIMARY KEY (case_id, scorer), 
	CONSTRAINT fk_case_score_case_id_study_case FOREIGN KEY(case_id) REFERENCES study_case (id)
);
CREATE TABLE reference_answer (
	case_id INTEGER NOT NULL, 
	answer SMALLINT NOT NULL, 
	comment TEXT NOT NULL, 
	CONSTRAINT pk_reference_answer PRIMARY KEY (case_id), 
	CONSTRAINT fk_reference_answer_case_id_study_case FOREIGN KEY(case_id) REFERENCES study_case (id)
);
CREATE TABLE assignment (
	case_id INTEGER NOT NULL, 
	slot INTEGER NOT NULL, 
	reviewer_id INTEGER, 
	held_until DATETIME, 
	put_off_at DATETIME, 
	CONSTRAINT pk_assignment PRIMARY KEY (case_id, slot), 
	CONSTRAINT fk_assignment_case_id_study_case FOREIGN KEY(case_id) REFERENCES study_case (id), 
	CONSTRAINT fk_assignment_reviewer_id_person FOREIGN KEY(reviewer_id) REFERENCES person (id), 
	CONSTRAINT uq_assignment_case_id_reviewer_id UNIQUE (case_id, reviewer_id)
);
CREATE INDEX ix_assignment_reviewer_id ON assignment (reviewer_id);
CREATE TABLE draft (
	case_id INTEGER NOT NULL, 
	reviewer_id INTEGER NOT NULL, 
	answer SMALLINT, 
	certainty VARCHAR(20), 
	comment TEXT NOT NULL, 
	written_at DATETIME NOT NULL, 
	CONSTRAINT pk_draft PRIMARY KEY (case_id, reviewer_id), 
	CONSTRAINT fk_draft_case_id_study_case FOREIGN KEY(case_id) REFERENCES study_case (id), 
	CONSTRAINT fk_draft_reviewer_id_person FOREIGN KEY(reviewer_id) REFERENCES person (id), 
	CONSTRAINT ck_draft_certainty CHECK (certainty IN ('certain', 'uncertain'))
);
CREATE INDEX ix_draft_reviewer_id ON draft (reviewer_id);
CREATE TABLE judgment (
	id INTEGER NOT NULL, 
	case_id INTEGER NOT NULL, 
	reviewer_id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	answer SMALLINT, 
	certainty VARCHAR(20), 
	comment TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	form_key TEXT NOT NULL, 
	judged_at DATETIME NOT NULL, 
	active_seconds DOUBLE, 
	saw_score_before BOOLEAN NOT NULL, 
	rubric_version INTEGER NOT NULL, 
	CONSTRAINT pk_judgment PRIMARY KEY (id), 
	CONSTRAINT ck_judgment_reason_given CHECK (answer IS NULL OR answer <> 0 OR reason <> ''), 
	CONSTRAINT ck_judgment_answer_code CHECK (answer BETWEEN 0 AND 3), 
	CONSTRAINT ck_judgment_version_from_one CHECK (version >= 1), 
	CONSTRAINT fk_judgment_case_id_study_case FOREIGN KEY(case_id) REFERENCES study_case (id), 
	CONSTRAINT fk_judgment_reviewer_id_person FOREIGN KEY(reviewer_id) REFERENCES person (id), 
	CONSTRAINT uq_judgment_case_id_reviewer_id_version UNIQUE (case_id, reviewer_id, version), 
	CONSTRAINT uq_judgment_form_key UNIQUE (form_key), 
	CONSTRAINT ck_judgment_certainty CHECK (certainty IN ('certain', 'uncertain'))
);
CREATE INDEX ix_judgment_reviewer_id ON judgment (reviewer_id);
CREATE TABLE adjudication (
	case_id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	adjudicator_id INTEGER NOT NULL, 
	answer SMALLINT NOT NULL, 
	comment TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	form_key TEXT NOT NULL, 
	adjudicated_at DATETIME NOT NULL, 
	CONSTRAINT pk_adjudication PRIMARY KEY (case_id, version), 
	CONSTRAINT ck_adjudication_answer_code CHECK (answer BETWEEN 0 AND 3), 
	CONSTRAINT fk_adjudication_adjudicator_id_person FOREIGN KEY(adjudicator_id) REFERENCES person (id), 
	CONSTRAINT fk_adjudication_case_id_study_case FOREIGN KEY(case_id) REFERENCES study_case (id), 
	CONSTRAINT uq_adjudication_form_key UNIQUE (form_key)
);
CREATE INDEX ix_adjudication_adjudicator_id ON adjudication (adjudicator_id);
CREATE TABLE audit_event (
	sequence INTEGER NOT NULL, 
	at TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	action TEXT NOT NULL, 
	object TEXT NOT NULL, 
	details TEXT NOT NULL, 
	previous_hash TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	CONSTRAINT pk_audit_event PRIMARY KEY (sequence), 
	CONSTRAINT uq_audit_event_hash UNIQUE (hash)
);
CREATE TRIGGER rubric_refuses_update BEFORE UPDATE ON rubric BEGIN SELECT RAISE(ABORT, 'rubric is append-only'); END;
CREATE TRIGGER rubric_refuses_delete BEFORE DELETE ON rubric BEGIN SELECT RAISE(ABORT, 'rubric is append-only'); END;
CREATE TRIGGER judgment_refuses_update BEFORE UPDATE ON judgment BEGIN SELECT RAISE(ABORT, 'judgment is append-only'); END;
CREATE TRIGGER judgment_refuses_delete BEFORE DELETE ON judgment BEGIN SELECT RAISE(ABORT, 'judgment is append-only'); END;
CREATE TRIGGER adjudication_refuses_update BEFORE UPDATE ON adjudication BEGIN SELECT RAISE(ABORT, 'adjudication is append-only'); END;
CREATE TRIGGER adjudication_refuses_delete BEFORE DELETE ON adjudication BEGIN SELECT RAISE(ABORT, 'adjudication is append-only'); END;
CREATE TRIGGER audit_event_refuses_update BEFORE UPDATE ON audit_event BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END;
CREATE TRIGGER audit_event_refuses_delete BEFORE DELETE ON audit_event BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END;
CREATE TRIGGER person_refuses_delete BEFORE DELETE ON person BEGIN SELECT RAISE(ABORT, 'person is append-only'); END;
CREATE TABLE report_signature (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	signer_id INTEGER NOT NULL, 
	signer_name TEXT NOT NULL, 
	meaning TEXT NOT NULL, 
	signed_at DATETIME NOT NULL, 
	content_hash TEXT NOT NULL, 
	superseded_at DATETIME, 
	CONSTRAINT pk_report_signature PRIMARY KEY (id), 
	CONSTRAINT ck_report_signature_name_and_meaning CHECK (signer_name <> '' AND meaning <> ''), 
	CONSTRAINT ck_report_signature_hash_length CHECK (length(content_hash) = 64), 
	CONSTRAINT fk_report_signature_signer_id_person FOREIGN KEY(signer_id) REFERENCES person (id), 
	CONSTRAINT fk_report_signature_study_id_study FOREIGN KEY(study_id) REFERENCES study (id)
);
CREATE INDEX ix_report_signature_signer_id ON report_signature (signer_id);
CREATE INDEX ix_report_signature_study_id ON report_signature (study_id);
CREATE TRIGGER report_signature_refuses_delete BEFORE DELETE ON report_signature BEGIN SELECT RAISE(ABORT, 'report_signature is append-only'); END;
CREATE TRIGGER report_signature_refuses_update BEFORE UPDATE ON report_signature WHEN OLD.superseded_at IS NOT NULL OR NEW.superseded_at IS NULL OR NOT (NEW.id = OLD.id AND NEW.study_id = OLD.study_id AND NEW.signer_id = OLD.signer_id AND NEW.signer_name = OLD.signer_name AND NEW.meaning = OLD.meaning AND NEW.signed_at = OLD.signed_at AND NEW.content_hash = OLD.content_hash) BEGIN SELECT RAISE(ABORT, 'report_signature is append-only'); END;
CREATE TABLE triage_act (
	id INTEGER NOT NULL, 
	patient_id TEXT NOT NULL, 
	snapshot_at DATETIME NOT NULL, 
	task_key TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	former_state VARCHAR(20) NOT NULL, 
	state VARCHAR(20) NOT NULL, 
	snoozed_until DATETIME, 
	reason TEXT NOT NULL, 
	person_id INTEGER NOT NULL, 
	acted_at DATETIME NOT NULL, 
	form_key TEXT NOT NULL, 
	CONSTRAINT pk_triage_act PRIMARY KEY (id), 
	CONSTRAINT ck_triage_act_version_from_one CHECK (version >= 1), 
	CONSTRAINT ck_triage_act_reason_given CHECK (state <> 'dismissed' OR reason <> ''), 
	CONSTRAINT ck_triage_act_snooze_ends CHECK ((state = 'snoozed') = (snoozed_until IS NOT NULL)), 
	CONSTRAINT fk_triage_act_person_id_person FOREIGN KEY(person_id) REFERENCES person (id), 
	CONSTRAINT uq_triage_act_form_key_patient_id_snapshot_at_task_key UNIQUE (form_key, patient_id, snapshot_at, task_key), 
	CONSTRAINT uq_triage_act_patient_id_snapshot_at_task_key_version UNIQUE (patient_id, snapshot_at, task_key, version), 
	CONSTRAINT ck_triage_act_former_state CHECK (former_state IN ('new', 'in_review', 'actioned', 'dismissed', 'snoozed')), 
	CONSTRAINT ck_triage_act_state CHECK (state IN ('new', 'in_review', 'actioned', 'dismissed', 'snoozed'))
);
CREATE INDEX ix_triage_act_person_id ON triage_act (person_id);
CREATE TABLE triage (
	patient_id TEXT NOT NULL, 
	snapshot_at DATETIME NOT NULL, 
	task_key TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	state VARCHAR(20) NOT NULL, 
	snoozed_until DATETIME, 
	act_id INTEGER NOT NULL, 
	CONSTRAINT pk_triage PRIMARY KEY (patient_id, snapshot_at, task_key), 
	CONSTRAINT fk_triage_act_id_triage_act FOREIGN KEY(act_id) REFERENCES triage_act (id), 
	CONSTRAINT ck_triage_state CHECK (state IN ('new', 'in_review', 'actioned', 'dismissed', 'snoozed'))
);
CREATE INDEX ix_triage_act_id ON triage (act_id);
CREATE INDEX ix_triage_state ON triage (state);
CREATE TABLE triage_note (
	id INTEGER NOT NULL, 
	patient_id TEXT NOT NULL, 
	snapshot_at DATETIME NOT NULL, 
	task_key TEXT NOT NULL, 
	text TEXT NOT NULL, 
	person_id INTEGER NOT NULL, 
	written_at DATETIME NOT NULL, 
	form_key TEXT NOT NULL, 
	CONSTRAINT pk_triage_note PRIMARY KEY (id), 
	CONSTRAINT ck_triage_note_some_text CHECK (text <> ''), 
	CONSTRAINT fk_triage_note_person_id_person FOREIGN KEY(person_id) REFERENCES person (id), 
	CONSTRAINT uq_triage_note_form_key UNIQUE (form_key)
);
CREATE INDEX ix_triage_note_patient_id_snapshot_at_task_key ON triage_note (patient_id, snapshot_at, task_key);
CREATE INDEX ix_triage_note_person_id ON triage_note (person_id);
CREATE TABLE saved_view (
	id INTEGER NOT NULL, 
	owner_id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	is_shared BOOLEAN NOT NULL, 
	address JSON NOT NULL, 
	saved_at DATETIME NOT NULL, 
	CONSTRAINT pk_saved_view PRIMARY KEY (id), 
	CONSTRAINT ck_saved_view_some_name CHECK (name <> ''), 
	CONSTRAINT fk_saved_view_owner_id_person FOREIGN KEY(owner_id) REFERENCES person (id), 
	CONSTRAINT uq_saved_view_owner_id_name UNIQUE (owner_id, name)
);
CREATE INDEX ix_saved_view_is_shared ON saved_view (is_shared);
CREATE INDEX ix_instance_snapshot_id_snapshot_at ON instance (snapshot_id, snapshot_at);
CREATE TRIGGER triage_act_refuses_update BEFORE UPDATE ON triage_act BEGIN SELECT RAISE(ABORT, 'triage_act is append-only'); END;
CREATE TRIGGER triage_act_refuses_delete BEFORE DELETE ON triage_act BEGIN SELECT RAISE(ABORT, 'triage_act is append-only'); END;
CREATE TRIGGER triage_refuses_delete BEFORE DELETE ON triage BEGIN SELECT RAISE(ABORT, 'triage is append-only'); END;
CREATE TRIGGER triage_note_refuses_update BEFORE UPDATE ON triage_note BEGIN SELECT RAISE(ABORT, 'triage_note is append-only'); END;
CREATE TRIGGER triage_note_refuses_delete BEFORE DELETE ON triage_note BEGIN SELECT RAISE(ABORT, 'triage_note is append-only'); END;
CREATE TABLE account (
	person_id INTEGER NOT NULL, 
	source VARCHAR(20) NOT NULL, 
	login TEXT NOT NULL, 
	password_hash TEXT, 
	code_hash TEXT, 
	code_expires_at DATETIME, 
	failures INTEGER NOT NULL, 
	locked_until DATETIME, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_account PRIMARY KEY (person_id), 
	CONSTRAINT ck_account_login_given CHECK (login <> ''), 
	CONSTRAINT ck_account_failures_counted CHECK (failures >= 0), 
	CONSTRAINT ck_account_code_expires CHECK ((code_hash IS NULL) = (code_expires_at IS NULL)), 
	CONSTRAINT fk_account_person_id_person FOREIGN KEY(person_id) REFERENCES person (id), 
	CONSTRAINT uq_account_source_login UNIQUE (source, login), 
	CONSTRAINT ck_account_source CHECK (source IN ('local', 'oidc', 'proxy'))
);
CREATE TABLE sign_in_session (
	id INTEGER NOT NULL, 
	token_hash TEXT NOT NULL, 
	person_id INTEGER NOT NULL, 
	source VARCHAR(20) NOT NULL, 
	created_at DATETIME NOT NULL, 
	last_seen_at DATETIME NOT NULL, 
	expires_at DATETIME NOT NULL, 
	confirmed_at DATETIME, 
	ended_at DATETIME, 
	end_reason TEXT NOT NULL, 
	browser TEXT NOT NULL, 
	CONSTRAINT pk_sign_in_session PRIMARY KEY (id), 
	CONSTRAINT ck_sign_in_session_hash_length CHECK (length(token_hash) = 64), 
	CONSTRAINT fk_sign_in_session_person_id_person FOREIGN KEY(person_id) REFERENCES person (id), 
	CONSTRAINT uq_sign_in_session_token_hash UNIQUE (token_hash), 
	CONSTRAINT ck_sign_in_session_source CHECK (source IN ('local', 'oidc', 'proxy'))
);
CREATE INDEX ix_sign_in_session_person_id ON sign_in_session (person_id);
CREATE TABLE sign_in_flow (
	state_hash TEXT NOT NULL, 
	nonce TEXT NOT NULL, 
	code_verifier TEXT NOT NULL, 
	target TEXT NOT NULL, 
	confirms_session_id INTEGER, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_sign_in_flow PRIMARY KEY (state_hash), 
	CONSTRAINT fk_sign_in_flow_confirms_session_id_sign_in_session FOREIGN KEY(confirms_session_id) REFERENCES sign_in_session (id)
);
CREATE INDEX ix_sign_in_flow_created_at ON sign_in_flow (created_at);
CREATE INDEX ix_sign_in_flow_confirms_session_id ON sign_in_flow (confirms_session_id);
CREATE TABLE unit_scope (
	person_id INTEGER NOT NULL, 
	unit TEXT NOT NULL, 
	CONSTRAINT pk_unit_scope PRIMARY KEY (person_id, unit), 
	CONSTRAINT fk_unit_scope_person_id_person FOREIGN KEY(person_id) REFERENCES person (id)
);
CREATE TABLE "alert" (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	task_id INTEGER NOT NULL, 
	instance_id INTEGER NOT NULL, 
	rank INTEGER NOT NULL, 
	decision VARCHAR(20) NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	unit TEXT NOT NULL, 
	window_cut BOOLEAN NOT NULL, 
	score DOUBLE NOT NULL, 
	scaled_score DOUBLE NOT NULL, 
	soft_label DOUBLE NOT NULL, 
	support DOUBLE NOT NULL, 
	scorer TEXT NOT NULL, 
	CONSTRAINT pk_alert PRIMARY KEY (id), 
	CONSTRAINT fk_alert_instance_id_instance FOREIGN KEY(instance_id) REFERENCES instance (id), 
	CONSTRAINT fk_alert_run_id_scoring_run FOREIGN KEY(run_id) REFERENCES scoring_run (id), 
	CONSTRAINT ck_alert_rank_from_one CHECK (rank >= 1), 
	CONSTRAINT fk_alert_task_id_task FOREIGN KEY(task_id) REFERENCES task (id), 
	CONSTRAINT ck_alert_kind CHECK (kind IN ('LAB_ORDER', 'MEDICATION')), 
	CONSTRAINT ck_alert_decision CHECK (decision IN ('omission', 'commission')), 
	CONSTRAINT uq_alert_run_id_scorer_decision_rank UNIQUE (run_id, scorer, decision, rank)
);
CREATE INDEX ix_alert_task_id ON alert (task_id);
CREATE INDEX ix_alert_instance_id_task_id ON alert (instance_id, task_id);
CREATE INDEX ix_alert_run_id_scorer_rank_decision_window_cut ON alert (run_id, scorer, rank, decision, window_cut);
CREATE INDEX ix_alert_run_id_scorer_unit_rank_decision_window_cut ON alert (run_id, scorer, unit, rank, decision, window_cut);
CREATE INDEX ix_alert_run_id_scorer_kind_rank_decision_window_cut ON alert (run_id, scorer, kind, rank, decision, window_cut);
CREATE INDEX ix_alert_run_id_scorer_task_id_rank_decision_window_cut ON alert (run_id, scorer, task_id, rank, decision, window_cut);
CREATE TABLE "scoring_run" (
	id INTEGER NOT NULL, 
	snapshot_id INTEGER NOT NULL, 
	scorer TEXT NOT NULL, 
	scorers JSON NOT NULL, 
	parameters JSON NOT NULL, 
	seed BIGINT NOT NULL, 
	code_version TEXT NOT NULL, 
	split VARCHAR(20) NOT NULL, 
	status VARCHAR(20) NOT NULL, 
	created_at DATETIME NOT NULL, 
	published_at DATETIME, 
	n_past INTEGER NOT NULL, 
	n_recent INTEGER NOT NULL, 
	n_patient_days INTEGER NOT NULL, 
	fold_of_row BLOB NOT NULL, 
	floor_omission DOUBLE, 
	floor_commission DOUBLE, 
	n_omissions INTEGER NOT NULL, 
	n_commissions INTEGER NOT NULL, 
	n_tasks_scored INTEGER NOT NULL, 
	n_tasks_left_out INTEGER NOT NULL, 
	base_run_id INTEGER, 
	model_folder TEXT NOT NULL, 
	CONSTRAINT pk_scoring_run PRIMARY KEY (id), 
	CONSTRAINT fk_scoring_run_snapshot_id_cohort_snapshot FOREIGN KEY(snapshot_id) REFERENCES cohort_snapshot (id), 
	CONSTRAINT ck_scoring_run_split CHECK (split IN ('time', 'patient', 'folds', 'source')), 
	CONSTRAINT fk_scoring_run_base_run_id_scoring_run FOREIGN KEY(base_run_id) REFERENCES scoring_run (id), 
	CONSTRAINT ck_scoring_run_status CHECK (status IN ('running', 'published', 'abandoned'))
);
CREATE INDEX ix_scoring_run_status_published_at ON scoring_run (status, published_at);
CREATE INDEX ix_scoring_run_base_run_id ON scoring_run (base_run_id);
CREATE UNIQUE INDEX uq_scoring_run_one_running ON scoring_run (status) WHERE status = 'running';
CREATE INDEX ix_scoring_run_snapshot_id ON scoring_run (snapshot_id);
CREATE TABLE run_sensitivity (
	run_id INTEGER NOT NULL, 
	computed_at DATETIME NOT NULL, 
	code_version TEXT NOT NULL, 
	curves JSON NOT NULL, 
	CONSTRAINT pk_run_sensitivity PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_sensitivity_run_id_scoring_run FOREIGN KEY(run_id) REFERENCES scoring_run (id)
);
INSERT INTO alembic_version VALUES ('0007');
