CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TABLE public.account (
    person_id integer NOT NULL,
    source character varying(20) NOT NULL,
    login text NOT NULL,
    password_hash text,
    code_hash text,
    code_expires_at timestamp with time zone,
    failures integer NOT NULL,
    locked_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_account_code_expires CHECK (((code_hash IS NULL) = (code_expires_at IS NULL))),
    CONSTRAINT ck_account_failures_counted CHECK ((failures >= 0)),
    CONSTRAINT ck_account_login_given CHECK ((login <> ''::text)),
    CONSTRAINT ck_account_source CHECK (((source)::text = ANY ((ARRAY['local'::character varying, 'oidc'::character varying, 'proxy'::character varying])::text[])))
);
CREATE TABLE public.adjudication (
    case_id integer NOT NULL,
    version integer NOT NULL,
    adjudicator_id integer NOT NULL,
    answer smallint NOT NULL,
    comment text NOT NULL,
    reason text NOT NULL,
    form_key text NOT NULL,
    adjudicated_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_adjudication_answer_code CHECK (((answer >= 0) AND (answer <= 3)))
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.alert (
    id bigint NOT NULL,
    run_id integer NOT NULL,
    task_id integer NOT NULL,
    instance_id integer NOT NULL,
    rank integer NOT NULL,
    decision character varying(20) NOT NULL,
    kind character varying(20) NOT NULL,
    unit text NOT NULL,
    window_cut boolean NOT NULL,
    score double precision NOT NULL,
    scaled_score double precision NOT NULL,
    soft_label double precision NOT NULL,
    support double precision NOT NULL,
    scorer text NOT NULL,
    CONSTRAINT ck_alert_decision CHECK (((decision)::text = ANY ((ARRAY['omission'::character varying, 'commission'::character varying])::text[]))),
    CONSTRAINT ck_alert_kind CHECK (((kind)::text = ANY ((ARRAY['LAB_ORDER'::character varying, 'MEDICATION'::character varying])::text[]))),
    CONSTRAINT ck_alert_rank_from_one CHECK ((rank >= 1))
);
CREATE SEQUENCE public.alert_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.alert_id_seq OWNED BY public.alert.id;
CREATE TABLE public.assignment (
    case_id integer NOT NULL,
    slot integer NOT NULL,
    reviewer_id integer,
    held_until timestamp with time zone,
    put_off_at timestamp with time zone
);
CREATE TABLE public.audit_event (
    sequence bigint NOT NULL,
    at text NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    object text NOT NULL,
    details text NOT NULL,
    previous_hash text NOT NULL,
    hash text NOT NULL
);
CREATE TABLE public.case_score (
    case_id integer NOT NULL,
    scorer text NOT NULL,
    score double precision NOT NULL,
    scaled_score double precision NOT NULL,
    soft_label double precision,
    support double precision
);
CREATE TABLE public.cohort_snapshot (
    id integer NOT NULL,
    content_hash text NOT NULL,
    folder text NOT NULL,
    source_format text NOT NULL,
    mapping_name text NOT NULL,
    site_timezone text NOT NULL,
    calendar_is_shifted boolean NOT NULL,
    simulated boolean NOT NULL,
    import_summary json NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.cohort_snapshot_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.cohort_snapshot_id_seq OWNED BY public.cohort_snapshot.id;
CREATE TABLE public.draft (
    case_id integer NOT NULL,
    reviewer_id integer NOT NULL,
    answer smallint,
    certainty character varying(20),
    comment text NOT NULL,
    written_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_draft_certainty CHECK (((certainty)::text = ANY ((ARRAY['certain'::character varying, 'uncertain'::character varying])::text[])))
);
CREATE TABLE public.instance (
    id integer NOT NULL,
    snapshot_id integer NOT NULL,
    row_index integer NOT NULL,
    patient_id text NOT NULL,
    stay_id integer NOT NULL,
    snapshot_at timestamp with time zone NOT NULL,
    day_of_stay integer NOT NULL,
    unit text NOT NULL,
    age_years double precision,
    sex text NOT NULL,
    window_hours double precision NOT NULL
);
CREATE SEQUENCE public.instance_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.instance_id_seq OWNED BY public.instance.id;
CREATE TABLE public.judgment (
    id integer NOT NULL,
    case_id integer NOT NULL,
    reviewer_id integer NOT NULL,
    version integer NOT NULL,
    answer smallint,
    certainty character varying(20),
    comment text NOT NULL,
    reason text NOT NULL,
    form_key text NOT NULL,
    judged_at timestamp with time zone NOT NULL,
    active_seconds double precision,
    saw_score_before boolean NOT NULL,
    rubric_version integer NOT NULL,
    CONSTRAINT ck_judgment_answer_code CHECK (((answer >= 0) AND (answer <= 3))),
    CONSTRAINT ck_judgment_certainty CHECK (((certainty)::text = ANY ((ARRAY['certain'::character varying, 'uncertain'::character varying])::text[]))),
    CONSTRAINT ck_judgment_reason_given CHECK (((answer IS NULL) OR (answer <> 0) OR (reason <> ''::text))),
    CONSTRAINT ck_judgment_version_from_one CHECK ((version >= 1))
);
CREATE SEQUENCE public.judgment_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.judgment_id_seq OWNED BY public.judgment.id;
CREATE TABLE public.person (
    id integer NOT NULL,
    name text NOT NULL,
    role character varying(20) NOT NULL,
    simulated boolean NOT NULL,
    active boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    all_units boolean DEFAULT true NOT NULL,
    CONSTRAINT ck_person_role CHECK (((role)::text = ANY ((ARRAY['viewer'::character varying, 'reviewer'::character varying, 'adjudicator'::character varying, 'coordinator'::character varying, 'researcher'::character varying, 'administrator'::character varying])::text[])))
);
CREATE SEQUENCE public.person_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.person_id_seq OWNED BY public.person.id;
CREATE TABLE public.reference_answer (
    case_id integer NOT NULL,
    answer smallint NOT NULL,
    comment text NOT NULL
);
CREATE TABLE public.report_signature (
    id integer NOT NULL,
    study_id integer NOT NULL,
    signer_id integer NOT NULL,
    signer_name text NOT NULL,
    meaning text NOT NULL,
    signed_at timestamp with time zone NOT NULL,
    content_hash text NOT NULL,
    superseded_at timestamp with time zone,
    CONSTRAINT ck_report_signature_hash_length CHECK ((length(content_hash) = 64)),
    CONSTRAINT ck_report_signature_name_and_meaning CHECK (((signer_name <> ''::text) AND (meaning <> ''::text)))
);
CREATE SEQUENCE public.report_signature_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.report_signature_id_seq OWNED BY public.report_signature.id;
CREATE TABLE public.rubric (
    study_id integer NOT NULL,
    version integer NOT NULL,
    question text NOT NULL,
    guidelines text NOT NULL,
    answer_texts json NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.run_sensitivity (
    run_id integer NOT NULL,
    computed_at timestamp with time zone NOT NULL,
    code_version text NOT NULL,
    curves json NOT NULL
);
CREATE TABLE public.saved_view (
    id integer NOT NULL,
    owner_id integer NOT NULL,
    name text NOT NULL,
    is_shared boolean NOT NULL,
    address json NOT NULL,
    saved_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_saved_view_some_name CHECK ((name <> ''::text))
);
CREATE SEQUENCE public.saved_view_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.saved_view_id_seq OWNED BY public.saved_view.id;
CREATE TABLE public.score_seen (
    person_id integer NOT NULL,
    patient_id text NOT NULL,
    snapshot_at timestamp with time zone NOT NULL,
    task_key text NOT NULL,
    first_seen_at timestamp with time zone NOT NULL
);
CREATE TABLE public.scoring_run (
    id integer NOT NULL,
    snapshot_id integer NOT NULL,
    scorer text NOT NULL,
    scorers json NOT NULL,
    parameters json NOT NULL,
    seed bigint NOT NULL,
    code_version text NOT NULL,
    split character varying(20) NOT NULL,
    status character varying(20) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone,
    n_past integer NOT NULL,
    n_recent integer NOT NULL,
    n_patient_days integer NOT NULL,
    fold_of_row bytea NOT NULL,
    floor_omission double precision,
    floor_commission double precision,
    n_omissions integer NOT NULL,
    n_commissions integer NOT NULL,
    n_tasks_scored integer NOT NULL,
    n_tasks_left_out integer NOT NULL,
    base_run_id integer,
    model_folder text NOT NULL,
    CONSTRAINT ck_scoring_run_split CHECK (((split)::text = ANY ((ARRAY['time'::character varying, 'patient'::character varying, 'folds'::character varying, 'source'::character varying])::text[]))),
    CONSTRAINT ck_scoring_run_status CHECK (((status)::text = ANY ((ARRAY['running'::character varying, 'published'::character varying, 'abandoned'::character varying])::text[])))
);
CREATE SEQUENCE public.scoring_run_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.scoring_run_id_seq OWNED BY public.scoring_run.id;
CREATE TABLE public.sign_in_flow (
    state_hash text NOT NULL,
    nonce text NOT NULL,
    code_verifier text NOT NULL,
    target text NOT NULL,
    confirms_session_id integer,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.sign_in_session (
    id integer NOT NULL,
    token_hash text NOT NULL,
    person_id integer NOT NULL,
    source character varying(20) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    confirmed_at timestamp with time zone,
    ended_at timestamp with time zone,
    end_reason text NOT NULL,
    browser text NOT NULL,
    CONSTRAINT ck_sign_in_session_hash_length CHECK ((length(token_hash) = 64)),
    CONSTRAINT ck_sign_in_session_source CHECK (((source)::text = ANY ((ARRAY['local'::character varying, 'oidc'::character varying, 'proxy'::character varying])::text[])))
);
CREATE SEQUENCE public.sign_in_session_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.sign_in_session_id_seq OWNED BY public.sign_in_session.id;
CREATE TABLE public.study (
    id integer NOT NULL,
    slug text NOT NULL,
    title text NOT NULL,
    run_id integer NOT NULL,
    status character varying(20) NOT NULL,
    rubric_version integer NOT NULL,
    n_slots integer NOT NULL,
    order_seed bigint NOT NULL,
    hold_hours double precision NOT NULL,
    simulated boolean NOT NULL,
    is_calibration boolean NOT NULL,
    selection_design json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    opened_at timestamp with time zone,
    locked_at timestamp with time zone,
    is_open_panel boolean DEFAULT false NOT NULL,
    CONSTRAINT ck_study_some_slot CHECK ((n_slots >= 1)),
    CONSTRAINT ck_study_status CHECK (((status)::text = ANY ((ARRAY['draft'::character varying, 'open'::character varying, 'locked'::character varying])::text[])))
);
CREATE TABLE public.study_case (
    id integer NOT NULL,
    study_id integer NOT NULL,
    number integer NOT NULL,
    instance_id integer NOT NULL,
    task_id integer NOT NULL,
    repeat_number integer NOT NULL,
    patient_id text NOT NULL,
    snapshot_at timestamp with time zone NOT NULL,
    task_key text NOT NULL,
    decision character varying(20) NOT NULL,
    stratum text NOT NULL,
    stratum_size integer NOT NULL,
    inclusion_probability double precision NOT NULL,
    CONSTRAINT ck_study_case_decision CHECK (((decision)::text = ANY ((ARRAY['omission'::character varying, 'commission'::character varying])::text[]))),
    CONSTRAINT ck_study_case_probability CHECK (((inclusion_probability > (0)::double precision) AND (inclusion_probability <= (1)::double precision)))
);
CREATE SEQUENCE public.study_case_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.study_case_id_seq OWNED BY public.study_case.id;
CREATE SEQUENCE public.study_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.study_id_seq OWNED BY public.study.id;
CREATE TABLE public.study_reader (
    study_id integer NOT NULL,
    person_id integer NOT NULL,
    number integer NOT NULL
);
CREATE TABLE public.task (
    id integer NOT NULL,
    snapshot_id integer NOT NULL,
    column_index integer NOT NULL,
    task_key text NOT NULL,
    name text NOT NULL,
    kind character varying(20) NOT NULL,
    order_group text NOT NULL,
    CONSTRAINT ck_task_kind CHECK (((kind)::text = ANY ((ARRAY['LAB_ORDER'::character varying, 'MEDICATION'::character varying])::text[])))
);
CREATE SEQUENCE public.task_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.task_id_seq OWNED BY public.task.id;
CREATE TABLE public.task_result (
    run_id integer NOT NULL,
    task_id integer NOT NULL,
    scorer text NOT NULL,
    reason text NOT NULL,
    n_past integer NOT NULL,
    n_past_positive integer NOT NULL,
    score bytea,
    scaled_score bytea,
    soft_label bytea,
    support bytea,
    feature_columns bytea,
    feature_weights bytea,
    score_histogram json,
    scaled_histogram json,
    scaling json NOT NULL,
    diagnostics json NOT NULL
);
CREATE TABLE public.triage (
    patient_id text NOT NULL,
    snapshot_at timestamp with time zone NOT NULL,
    task_key text NOT NULL,
    version integer NOT NULL,
    state character varying(20) NOT NULL,
    snoozed_until timestamp with time zone,
    act_id bigint CONSTRAINT triage_act_id_not_null1 NOT NULL,
    CONSTRAINT ck_triage_state CHECK (((state)::text = ANY ((ARRAY['new'::character varying, 'in_review'::character varying, 'actioned'::character varying, 'dismissed'::character varying, 'snoozed'::character varying])::text[])))
);
CREATE TABLE public.triage_act (
    id bigint NOT NULL,
    patient_id text NOT NULL,
    snapshot_at timestamp with time zone NOT NULL,
    task_key text NOT NULL,
    version integer NOT NULL,
    former_state character varying(20) NOT NULL,
    state character varying(20) NOT NULL,
    snoozed_until timestamp with time zone,
    reason text NOT NULL,
    person_id integer NOT NULL,
    acted_at timestamp with time zone NOT NULL,
    form_key text NOT NULL,
    CONSTRAINT ck_triage_act_former_state CHECK (((former_state)::text = ANY ((ARRAY['new'::character varying, 'in_review'::character varying, 'actioned'::character varying, 'dismissed'::character varying, 'snoozed'::character varying])::text[]))),
    CONSTRAINT ck_triage_act_reason_given CHECK ((((state)::text <> 'dismissed'::text) OR (reason <> ''::text))),
    CONSTRAINT ck_triage_act_snooze_ends CHECK ((((state)::text = 'snoozed'::text) = (snoozed_until IS NOT NULL))),
    CONSTRAINT ck_triage_act_state CHECK (((state)::text = ANY ((ARRAY['new'::character varying, 'in_review'::character varying, 'actioned'::character varying, 'dismissed'::character varying, 'snoozed'::character varying])::text[]))),
    CONSTRAINT ck_triage_act_version_from_one CHECK ((version >= 1))
);
CREATE SEQUENCE public.triage_act_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.triage_act_id_seq OWNED BY public.triage_act.id;
CREATE TABLE public.triage_note (
    id bigint NOT NULL,
    patient_id text NOT NULL,
    snapshot_at timestamp with time zone NOT NULL,
    task_key text NOT NULL,
    text text NOT NULL,
    person_id integer NOT NULL,
    written_at timestamp with time zone NOT NULL,
    form_key text NOT NULL,
    CONSTRAINT ck_triage_note_some_text CHECK ((text <> ''::text))
);
CREATE SEQUENCE public.triage_note_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.triage_note_id_seq OWNED BY public.triage_note.id;
CREATE TABLE public.unit_scope (
    person_id integer NOT NULL,
    unit text NOT NULL
);
ALTER TABLE ONLY public.alert ALTER COLUMN id SET DEFAULT nextval('public.alert_id_seq'::regclass);
ALTER TABLE ONLY public.cohort_snapshot ALTER COLUMN id SET DEFAULT nextval('public.cohort_snapshot_id_seq'::regclass);
ALTER TABLE ONLY public.instance ALTER COLUMN id SET DEFAULT nextval('public.instance_id_seq'::regclass);
ALTER TABLE ONLY public.judgment ALTER COLUMN id SET DEFAULT nextval('public.judgment_id_seq'::regclass);
ALTER TABLE ONLY public.person ALTER COLUMN id SET DEFAULT nextval('public.person_id_seq'::regclass);
ALTER TABLE ONLY public.report_signature ALTER COLUMN id SET DEFAULT nextval('public.report_signature_id_seq'::regclass);
ALTER TABLE ONLY public.saved_view ALTER COLUMN id SET DEFAULT nextval('public.saved_view_id_seq'::regclass);
ALTER TABLE ONLY public.scoring_run ALTER COLUMN id SET DEFAULT nextval('public.scoring_run_id_seq'::regclass);
ALTER TABLE ONLY public.sign_in_session ALTER COLUMN id SET DEFAULT nextval('public.sign_in_session_id_seq'::regclass);
ALTER TABLE ONLY public.study ALTER COLUMN id SET DEFAULT nextval('public.study_id_seq'::regclass);
ALTER TABLE ONLY public.study_case ALTER COLUMN id SET DEFAULT nextval('public.study_case_id_seq'::regclass);
ALTER TABLE ONLY public.task ALTER COLUMN id SET DEFAULT nextval('public.task_id_seq'::regclass);
ALTER TABLE ONLY public.triage_act ALTER COLUMN id SET DEFAULT nextval('public.triage_act_id_seq'::regclass);
ALTER TABLE ONLY public.triage_note ALTER COLUMN id SET DEFAULT nextval('public.triage_note_id_seq'::regclass);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.account
    ADD CONSTRAINT pk_account PRIMARY KEY (person_id);
ALTER TABLE ONLY public.adjudication
    ADD CONSTRAINT pk_adjudication PRIMARY KEY (case_id, version);
ALTER TABLE ONLY public.alert
    ADD CONSTRAINT pk_alert PRIMARY KEY (id);
ALTER TABLE ONLY public.assignment
    ADD CONSTRAINT pk_assignment PRIMARY KEY (case_id, slot);
ALTER TABLE ONLY public.audit_event
    ADD CONSTRAINT pk_audit_event PRIMARY KEY (sequence);
ALTER TABLE ONLY public.case_score
    ADD CONSTRAINT pk_case_score PRIMARY KEY (case_id, scorer);
ALTER TABLE ONLY public.cohort_snapshot
    ADD CONSTRAINT pk_cohort_snapshot PRIMARY KEY (id);
ALTER TABLE ONLY public.draft
    ADD CONSTRAINT pk_draft PRIMARY KEY (case_id, reviewer_id);
ALTER TABLE ONLY public.instance
    ADD CONSTRAINT pk_instance PRIMARY KEY (id);
ALTER TABLE ONLY public.judgment
    ADD CONSTRAINT pk_judgment PRIMARY KEY (id);
ALTER TABLE ONLY public.person
    ADD CONSTRAINT pk_person PRIMARY KEY (id);
ALTER TABLE ONLY public.reference_answer
    ADD CONSTRAINT pk_reference_answer PRIMARY KEY (case_id);
ALTER TABLE ONLY public.report_signature
    ADD CONSTRAINT pk_report_signature PRIMARY KEY (id);
ALTER TABLE ONLY public.rubric
    ADD CONSTRAINT pk_rubric PRIMARY KEY (study_id, version);
ALTER TABLE ONLY public.run_sensitivity
    ADD CONSTRAINT pk_run_sensitivity PRIMARY KEY (run_id);
ALTER TABLE ONLY public.saved_view
    ADD CONSTRAINT pk_saved_view PRIMARY KEY (id);
ALTER TABLE ONLY public.score_seen
    ADD CONSTRAINT pk_score_seen PRIMARY KEY (person_id, patient_id, snapshot_at, task_key);
ALTER TABLE ONLY public.scoring_run
    ADD CONSTRAINT pk_scoring_run PRIMARY KEY (id);
ALTER TABLE ONLY public.sign_in_flow
    ADD CONSTRAINT pk_sign_in_flow PRIMARY KEY (state_hash);
ALTER TABLE ONLY public.sign_in_session
    ADD CONSTRAINT pk_sign_in_session PRIMARY KEY (id);
ALTER TABLE ONLY public.study
    ADD CONSTRAINT pk_study PRIMARY KEY (id);
ALTER TABLE ONLY public.study_case
    ADD CONSTRAINT pk_study_case PRIMARY KEY (id);
ALTER TABLE ONLY public.study_reader
    ADD CONSTRAINT pk_study_reader PRIMARY KEY (study_id, person_id);
ALTER TABLE ONLY public.task
    ADD CONSTRAINT pk_task PRIMARY KEY (id);
ALTER TABLE ONLY public.task_result
    ADD CONSTRAINT pk_task_result PRIMARY KEY (run_id, task_id, scorer);
ALTER TABLE ONLY public.triage
    ADD CONSTRAINT pk_triage PRIMARY KEY (patient_id, snapshot_at, task_key);
ALTER TABLE ONLY public.triage_act
    ADD CONSTRAINT pk_triage_act PRIMARY KEY (id);
ALTER TABLE ONLY public.triage_note
    ADD CONSTRAINT pk_triage_note PRIMARY KEY (id);
ALTER TABLE ONLY public.unit_scope
    ADD CONSTRAINT pk_unit_scope PRIMARY KEY (person_id, unit);
ALTER TABLE ONLY public.account
    ADD CONSTRAINT uq_account_source_login UNIQUE (source, login);
ALTER TABLE ONLY public.adjudication
    ADD CONSTRAINT uq_adjudication_form_key UNIQUE (form_key);
ALTER TABLE ONLY public.alert
    ADD CONSTRAINT uq_alert_run_id_scorer_decision_rank UNIQUE (run_id, scorer, decision, rank);
ALTER TABLE ONLY public.assignment
    ADD CONSTRAINT uq_assignment_case_id_reviewer_id UNIQUE (case_id, reviewer_id);
ALTER TABLE ONLY public.audit_event
    ADD CONSTRAINT uq_audit_event_hash UNIQUE (hash);
ALTER TABLE ONLY public.cohort_snapshot
    ADD CONSTRAINT uq_cohort_snapshot_content_hash UNIQUE (content_hash);
ALTER TABLE ONLY public.instance
    ADD CONSTRAINT uq_instance_snapshot_id_row_index UNIQUE (snapshot_id, row_index);
ALTER TABLE ONLY public.judgment
    ADD CONSTRAINT uq_judgment_case_id_reviewer_id_version UNIQUE (case_id, reviewer_id, version);
ALTER TABLE ONLY public.judgment
    ADD CONSTRAINT uq_judgment_form_key UNIQUE (form_key);
ALTER TABLE ONLY public.person
    ADD CONSTRAINT uq_person_name UNIQUE (name);
ALTER TABLE ONLY public.saved_view
    ADD CONSTRAINT uq_saved_view_owner_id_name UNIQUE (owner_id, name);
ALTER TABLE ONLY public.sign_in_session
    ADD CONSTRAINT uq_sign_in_session_token_hash UNIQUE (token_hash);
ALTER TABLE ONLY public.study_case
    ADD CONSTRAINT uq_study_case_study_id_instance_id_task_id_repeat_number UNIQUE (study_id, instance_id, task_id, repeat_number);
ALTER TABLE ONLY public.study_case
    ADD CONSTRAINT uq_study_case_study_id_number UNIQUE (study_id, number);
ALTER TABLE ONLY public.study_reader
    ADD CONSTRAINT uq_study_reader_study_id_number UNIQUE (study_id, number);
ALTER TABLE ONLY public.study
    ADD CONSTRAINT uq_study_slug UNIQUE (slug);
ALTER TABLE ONLY public.task
    ADD CONSTRAINT uq_task_snapshot_id_column_index UNIQUE (snapshot_id, column_index);
ALTER TABLE ONLY public.task
    ADD CONSTRAINT uq_task_snapshot_id_task_key UNIQUE (snapshot_id, task_key);
ALTER TABLE ONLY public.triage_act
    ADD CONSTRAINT uq_triage_act_form_key_patient_id_snapshot_at_task_key UNIQUE (form_key, patient_id, snapshot_at, task_key);
ALTER TABLE ONLY public.triage_act
    ADD CONSTRAINT uq_triage_act_patient_id_snapshot_at_task_key_version UNIQUE (patient_id, snapshot_at, task_key, version);
ALTER TABLE ONLY public.triage_note
    ADD CONSTRAINT uq_triage_note_form_key UNIQUE (form_key);
CREATE INDEX ix_adjudication_adjudicator_id ON public.adjudication USING btree (adjudicator_id);
CREATE INDEX ix_alert_instance_id_task_id ON public.alert USING btree (instance_id, task_id);
CREATE INDEX ix_alert_run_id_scorer_kind_rank_decision_window_cut ON public.alert USING btree (run_id, scorer, kind, rank, decision, window_cut);
CREATE INDEX ix_alert_run_id_scorer_rank_decision_window_cut ON public.alert USING btree (run_id, scorer, rank, decision, window_cut);
CREATE INDEX ix_alert_run_id_scorer_task_id_rank_decision_window_cut ON public.alert USING btree (run_id, scorer, task_id, rank, decision, window_cut);
CREATE INDEX ix_alert_run_id_scorer_unit_rank_decision_window_cut ON public.alert USING btree (run_id, scorer, unit, rank, decision, window_cut);
CREATE INDEX ix_alert_task_id ON public.alert USING btree (task_id);
CREATE INDEX ix_assignment_reviewer_id ON public.assignment USING btree (reviewer_id);
CREATE INDEX ix_draft_reviewer_id ON public.draft USING btree (reviewer_id);
CREATE INDEX ix_instance_snapshot_id_patient_id ON public.instance USING btree (snapshot_id, patient_id);
CREATE INDEX ix_instance_snapshot_id_snapshot_at ON public.instance USING btree (snapshot_id, snapshot_at);
CREATE INDEX ix_judgment_reviewer_id ON public.judgment USING btree (reviewer_id);
CREATE INDEX ix_report_signature_signer_id ON public.report_signature USING btree (signer_id);
CREATE INDEX ix_report_signature_study_id ON public.report_signature USING btree (study_id);
CREATE INDEX ix_saved_view_is_shared ON public.saved_view USING btree (is_shared);
CREATE INDEX ix_scoring_run_base_run_id ON public.scoring_run USING btree (base_run_id);
CREATE INDEX ix_scoring_run_snapshot_id ON public.scoring_run USING btree (snapshot_id);
CREATE INDEX ix_scoring_run_status_published_at ON public.scoring_run USING btree (status, published_at);
CREATE INDEX ix_sign_in_flow_confirms_session_id ON public.sign_in_flow USING btree (confirms_session_id);
CREATE INDEX ix_sign_in_flow_created_at ON public.sign_in_flow USING btree (created_at);
CREATE INDEX ix_sign_in_session_person_id ON public.sign_in_session USING btree (person_id);
CREATE INDEX ix_study_case_instance_id ON public.study_case USING btree (instance_id);
CREATE INDEX ix_study_case_patient_id_snapshot_at_task_key ON public.study_case USING btree (patient_id, snapshot_at, task_key);
CREATE INDEX ix_study_case_task_id ON public.study_case USING btree (task_id);
CREATE INDEX ix_task_result_task_id ON public.task_result USING btree (task_id);
CREATE INDEX ix_triage_act_id ON public.triage USING btree (act_id);
CREATE INDEX ix_triage_act_person_id ON public.triage_act USING btree (person_id);
CREATE INDEX ix_triage_note_patient_id_snapshot_at_task_key ON public.triage_note USING btree (patient_id, snapshot_at, task_key);
CREATE INDEX ix_triage_note_person_id ON public.triage_note USING btree (person_id);
CREATE INDEX ix_triage_state ON public.triage USING btree (state);
CREATE UNIQUE INDEX uq_scoring_run_one_running ON public.scoring_run USING btree (status) WHERE ((status)::text = 'running'::text);
CREATE TRIGGER adjudication_refuses_delete BEFORE DELETE ON public.adjudication FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER adjudication_refuses_truncate BEFORE TRUNCATE ON public.adjudication FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER adjudication_refuses_update BEFORE UPDATE ON public.adjudication FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER audit_event_refuses_delete BEFORE DELETE ON public.audit_event FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER audit_event_refuses_truncate BEFORE TRUNCATE ON public.audit_event FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER audit_event_refuses_update BEFORE UPDATE ON public.audit_event FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER judgment_refuses_delete BEFORE DELETE ON public.judgment FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER judgment_refuses_truncate BEFORE TRUNCATE ON public.judgment FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER judgment_refuses_update BEFORE UPDATE ON public.judgment FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER person_refuses_delete BEFORE DELETE ON public.person FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER person_refuses_truncate BEFORE TRUNCATE ON public.person FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER report_signature_refuses_delete BEFORE DELETE ON public.report_signature FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER report_signature_refuses_truncate BEFORE TRUNCATE ON public.report_signature FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER report_signature_refuses_update BEFORE UPDATE ON public.report_signature FOR EACH ROW WHEN (((old.superseded_at IS NOT NULL) OR (new.superseded_at IS NULL) OR (NOT ((new.id = old.id) AND (new.study_id = old.study_id) AND (new.signer_id = old.signer_id) AND (new.signer_name = old.signer_name) AND (new.meaning = old.meaning) AND (new.signed_at = old.signed_at) AND (new.content_hash = old.content_hash))))) EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER rubric_refuses_delete BEFORE DELETE ON public.rubric FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER rubric_refuses_truncate BEFORE TRUNCATE ON public.rubric FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER rubric_refuses_update BEFORE UPDATE ON public.rubric FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER triage_act_refuses_delete BEFORE DELETE ON public.triage_act FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER triage_act_refuses_truncate BEFORE TRUNCATE ON public.triage_act FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER triage_act_refuses_update BEFORE UPDATE ON public.triage_act FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER triage_note_refuses_delete BEFORE DELETE ON public.triage_note FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER triage_note_refuses_truncate BEFORE TRUNCATE ON public.triage_note FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER triage_note_refuses_update BEFORE UPDATE ON public.triage_note FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER triage_refuses_delete BEFORE DELETE ON public.triage FOR EACH ROW EXECUTE FUNCTION public.refuse_change();
CREATE TRIGGER triage_refuses_truncate BEFORE TRUNCATE ON public.triage FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();
ALTER TABLE ONLY public.account
    ADD CONSTRAINT fk_account_person_id_person FOREIGN KEY (person_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.adjudication
    ADD CONSTRAINT fk_adjudication_adjudicator_id_person FOREIGN KEY (adjudicator_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.adjudication
    ADD CONSTRAINT fk_adjudication_case_id_study_case FOREIGN KEY (case_id) REFERENCES public.study_case(id);
ALTER TABLE ONLY public.alert
    ADD CONSTRAINT fk_alert_instance_id_instance FOREIGN KEY (instance_id) REFERENCES public.instance(id);
ALTER TABLE ONLY public.alert
    ADD CONSTRAINT fk_alert_run_id_scoring_run FOREIGN KEY (run_id) REFERENCES public.scoring_run(id);
ALTER TABLE ONLY public.alert
    ADD CONSTRAINT fk_alert_task_id_task FOREIGN KEY (task_id) REFERENCES public.task(id);
ALTER TABLE ONLY public.assignment
    ADD CONSTRAINT fk_assignment_case_id_study_case FOREIGN KEY (case_id) REFERENCES public.study_case(id);
ALTER TABLE ONLY public.assignment
    ADD CONSTRAINT fk_assignment_reviewer_id_person FOREIGN KEY (reviewer_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.case_score
    ADD CONSTRAINT fk_case_score_case_id_study_case FOREIGN KEY (case_id) REFERENCES public.study_case(id);
ALTER TABLE ONLY public.draft
    ADD CONSTRAINT fk_draft_case_id_study_case FOREIGN KEY (case_id) REFERENCES public.study_case(id);
ALTER TABLE ONLY public.draft
    ADD CONSTRAINT fk_draft_reviewer_id_person FOREIGN KEY (reviewer_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.instance
    ADD CONSTRAINT fk_instance_snapshot_id_cohort_snapshot FOREIGN KEY (snapshot_id) REFERENCES public.cohort_snapshot(id);
ALTER TABLE ONLY public.judgment
    ADD CONSTRAINT fk_judgment_case_id_study_case FOREIGN KEY (case_id) REFERENCES public.study_case(id);
ALTER TABLE ONLY public.judgment
    ADD CONSTRAINT fk_judgment_reviewer_id_person FOREIGN KEY (reviewer_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.reference_answer
    ADD CONSTRAINT fk_reference_answer_case_id_study_case FOREIGN KEY (case_id) REFERENCES public.study_case(id);
ALTER TABLE ONLY public.report_signature
    ADD CONSTRAINT fk_report_signature_signer_id_person FOREIGN KEY (signer_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.report_signature
    ADD CONSTRAINT fk_report_signature_study_id_study FOREIGN KEY (study_id) REFERENCES public.study(id);
ALTER TABLE ONLY public.rubric
    ADD CONSTRAINT fk_rubric_study_id_study FOREIGN KEY (study_id) REFERENCES public.study(id);
ALTER TABLE ONLY public.run_sensitivity
    ADD CONSTRAINT fk_run_sensitivity_run_id_scoring_run FOREIGN KEY (run_id) REFERENCES public.scoring_run(id);
ALTER TABLE ONLY public.saved_view
    ADD CONSTRAINT fk_saved_view_owner_id_person FOREIGN KEY (owner_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.score_seen
    ADD CONSTRAINT fk_score_seen_person_id_person FOREIGN KEY (person_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.scoring_run
    ADD CONSTRAINT fk_scoring_run_base_run_id_scoring_run FOREIGN KEY (base_run_id) REFERENCES public.scoring_run(id);
ALTER TABLE ONLY public.scoring_run
    ADD CONSTRAINT fk_scoring_run_snapshot_id_cohort_snapshot FOREIGN KEY (snapshot_id) REFERENCES public.cohort_snapshot(id);
ALTER TABLE ONLY public.sign_in_flow
    ADD CONSTRAINT fk_sign_in_flow_confirms_session_id_sign_in_session FOREIGN KEY (confirms_session_id) REFERENCES public.sign_in_session(id);
ALTER TABLE ONLY public.sign_in_session
    ADD CONSTRAINT fk_sign_in_session_person_id_person FOREIGN KEY (person_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.study_case
    ADD CONSTRAINT fk_study_case_instance_id_instance FOREIGN KEY (instance_id) REFERENCES public.instance(id);
ALTER TABLE ONLY public.study_case
    ADD CONSTRAINT fk_study_case_study_id_study FOREIGN KEY (study_id) REFERENCES public.study(id);
ALTER TABLE ONLY public.study_case
    ADD CONSTRAINT fk_study_case_task_id_task FOREIGN KEY (task_id) REFERENCES public.task(id);
ALTER TABLE ONLY public.study_reader
    ADD CONSTRAINT fk_study_reader_person_id_person FOREIGN KEY (person_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.study_reader
    ADD CONSTRAINT fk_study_reader_study_id_study FOREIGN KEY (study_id) REFERENCES public.study(id);
ALTER TABLE ONLY public.study
    ADD CONSTRAINT fk_study_run_id_scoring_run FOREIGN KEY (run_id) REFERENCES public.scoring_run(id);
ALTER TABLE ONLY public.task_result
    ADD CONSTRAINT fk_task_result_run_id_scoring_run FOREIGN KEY (run_id) REFERENCES public.scoring_run(id);
ALTER TABLE ONLY public.task_result
    ADD CONSTRAINT fk_task_result_task_id_task FOREIGN KEY (task_id) REFERENCES public.task(id);
ALTER TABLE ONLY public.task
    ADD CONSTRAINT fk_task_snapshot_id_cohort_snapshot FOREIGN KEY (snapshot_id) REFERENCES public.cohort_snapshot(id);
ALTER TABLE ONLY public.triage
    ADD CONSTRAINT fk_triage_act_id_triage_act FOREIGN KEY (act_id) REFERENCES public.triage_act(id);
ALTER TABLE ONLY public.triage_act
    ADD CONSTRAINT fk_triage_act_person_id_person FOREIGN KEY (person_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.triage_note
    ADD CONSTRAINT fk_triage_note_person_id_person FOREIGN KEY (person_id) REFERENCES public.person(id);
ALTER TABLE ONLY public.unit_scope
    ADD CONSTRAINT fk_unit_scope_person_id_person FOREIGN KEY (person_id) REFERENCES public.person(id);
INSERT INTO public.alembic_version VALUES ('0007');
