"""The first schema

Revision: 0001, after nothing
"""

import sqlalchemy as sa
from alembic import op

from db.migrations.append_only import drop_function, refuse

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    "cohort_snapshot",
    "instance",
    "task",
    "scoring_run",
    "task_result",
    "alert",
    "person",
    "score_seen",
    "study",
    "rubric",
    "study_reader",
    "study_case",
    "case_score",
    "reference_answer",
    "assignment",
    "draft",
    "judgment",
    "adjudication",
    "audit_event",
)


def upgrade() -> None:
    create_cohort_snapshot()
    create_instance()
    create_task()
    create_scoring_run()
    create_task_result()
    create_alert()
    create_person()
    create_score_seen()
    create_study()
    create_rubric()
    create_study_reader()
    create_study_case()
    create_case_score()
    create_reference_answer()
    create_assignment()
    create_draft()
    create_judgment()
    create_adjudication()
    create_audit_event()
    for table in ("rubric", "judgment", "adjudication", "audit_event"):
        refuse(table, "UPDATE", "DELETE")
    refuse("person", "DELETE")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    drop_function()


def create_cohort_snapshot() -> None:
    op.create_table(
        "cohort_snapshot",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("source_format", sa.Text(), nullable=False),
        sa.Column("mapping_name", sa.Text(), nullable=False),
        sa.Column("site_timezone", sa.Text(), nullable=False),
        sa.Column("calendar_is_shifted", sa.Boolean(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("import_summary", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cohort_snapshot")),
        sa.UniqueConstraint("content_hash", name=op.f("uq_cohort_snapshot_content_hash")),
    )


def create_instance() -> None:
    op.create_table(
        "instance",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("snapshot_id", sa.Integer(), nullable=False),
        sa.Column("row_index", sa.Integer(), nullable=False),
        sa.Column("patient_id", sa.Text(), nullable=False),
        sa.Column("stay_id", sa.Integer(), nullable=False),
        sa.Column("snapshot_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("day_of_stay", sa.Integer(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("age_years", sa.Double(), nullable=True),
        sa.Column("sex", sa.Text(), nullable=False),
        sa.Column("window_hours", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["cohort_snapshot.id"], name=op.f("fk_instance_snapshot_id_cohort_snapshot")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance")),
        sa.UniqueConstraint("snapshot_id", "row_index", name=op.f("uq_instance_snapshot_id_row_index")),
    )
    with op.batch_alter_table("instance", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_instance_snapshot_id_patient_id"), ["snapshot_id", "patient_id"], unique=False
        )


def create_task() -> None:
    op.create_table(
        "task",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("snapshot_id", sa.Integer(), nullable=False),
        sa.Column("column_index", sa.Integer(), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "kind",
            sa.Enum("LAB_ORDER", "MEDICATION", name="kind", native_enum=False, create_constraint=True, length=20),
            nullable=False,
        ),
        sa.Column("order_group", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["cohort_snapshot.id"], name=op.f("fk_task_snapshot_id_cohort_snapshot")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
        sa.UniqueConstraint("snapshot_id", "column_index", name=op.f("uq_task_snapshot_id_column_index")),
        sa.UniqueConstraint("snapshot_id", "task_key", name=op.f("uq_task_snapshot_id_task_key")),
    )


def create_scoring_run() -> None:
    op.create_table(
        "scoring_run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("snapshot_id", sa.Integer(), nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.Column("scorers", sa.JSON(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("code_version", sa.Text(), nullable=False),
        sa.Column(
            "split",
            sa.Enum(
                "time", "patient", "folds", "source", name="split", native_enum=False, create_constraint=True, length=20
            ),
            nullable=False,
        ),
        sa.Column(
            "status",
            sa.Enum(
                "running", "published", "abandoned", name="status", native_enum=False, create_constraint=True, length=20
            ),
            nullable=False,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("n_past", sa.Integer(), nullable=False),
        sa.Column("n_recent", sa.Integer(), nullable=False),
        sa.Column("n_patient_days", sa.Integer(), nullable=False),
        sa.Column("fold_of_row", sa.LargeBinary(), nullable=False),
        sa.Column("floor_omission", sa.Double(), nullable=True),
        sa.Column("floor_commission", sa.Double(), nullable=True),
        sa.Column("n_omissions", sa.Integer(), nullable=False),
        sa.Column("n_commissions", sa.Integer(), nullable=False),
        sa.Column("n_tasks_scored", sa.Integer(), nullable=False),
        sa.Column("n_tasks_left_out", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["cohort_snapshot.id"], name=op.f("fk_scoring_run_snapshot_id_cohort_snapshot")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scoring_run")),
    )
    with op.batch_alter_table("scoring_run", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_scoring_run_snapshot_id"), ["snapshot_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_scoring_run_status_published_at"), ["status", "published_at"], unique=False
        )
        batch_op.create_index(
            "uq_scoring_run_one_running",
            ["status"],
            unique=True,
            sqlite_where=sa.text("status = 'running'"),
            postgresql_where=sa.text("status = 'running'"),
        )


def create_task_result() -> None:
    op.create_table(
        "task_result",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("n_past", sa.Integer(), nullable=False),
        sa.Column("n_past_positive", sa.Integer(), nullable=False),
        sa.Column("score", sa.LargeBinary(), nullable=True),
        sa.Column("scaled_score", sa.LargeBinary(), nullable=True),
        sa.Column("soft_label", sa.LargeBinary(), nullable=True),
        sa.Column("support", sa.LargeBinary(), nullable=True),
        sa.Column("feature_columns", sa.LargeBinary(), nullable=True),
        sa.Column("feature_weights", sa.LargeBinary(), nullable=True),
        sa.Column("score_histogram", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("scaled_histogram", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("scaling", sa.JSON(), nullable=False),
        sa.Column("diagnostics", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["scoring_run.id"], name=op.f("fk_task_result_run_id_scoring_run")),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_task_result_task_id_task")),
        sa.PrimaryKeyConstraint("run_id", "task_id", "scorer", name=op.f("pk_task_result")),
    )
    with op.batch_alter_table("task_result", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_task_result_task_id"), ["task_id"], unique=False)


def create_alert() -> None:
    op.create_table(
        "alert",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("instance_id", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column(
            "decision",
            sa.Enum("omission", "commission", name="decision", native_enum=False, create_constraint=True, length=20),
            nullable=False,
        ),
        sa.Column(
            "kind",
            sa.Enum("LAB_ORDER", "MEDICATION", name="kind", native_enum=False, create_constraint=True, length=20),
            nullable=False,
        ),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("window_cut", sa.Boolean(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("scaled_score", sa.Double(), nullable=False),
        sa.Column("soft_label", sa.Double(), nullable=False),
        sa.Column("support", sa.Double(), nullable=False),
        sa.CheckConstraint("rank >= 1", name=op.f("ck_alert_rank_from_one")),
        sa.ForeignKeyConstraint(["instance_id"], ["instance.id"], name=op.f("fk_alert_instance_id_instance")),
        sa.ForeignKeyConstraint(["run_id"], ["scoring_run.id"], name=op.f("fk_alert_run_id_scoring_run")),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_alert_task_id_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert")),
        sa.UniqueConstraint("run_id", "decision", "rank", name=op.f("uq_alert_run_id_decision_rank")),
    )
    with op.batch_alter_table("alert", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_alert_instance_id_task_id"), ["instance_id", "task_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_alert_run_id_kind_rank_decision_window_cut"),
            ["run_id", "kind", "rank", "decision", "window_cut"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_alert_run_id_rank_decision_window_cut"),
            ["run_id", "rank", "decision", "window_cut"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_alert_run_id_task_id_rank_decision_window_cut"),
            ["run_id", "task_id", "rank", "decision", "window_cut"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_alert_run_id_unit_rank_decision_window_cut"),
            ["run_id", "unit", "rank", "decision", "window_cut"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_alert_task_id"), ["task_id"], unique=False)


def create_person() -> None:
    op.create_table(
        "person",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "role",
            sa.Enum(
                "viewer",
                "reviewer",
                "adjudicator",
                "coordinator",
                "researcher",
                "administrator",
                name="role",
                native_enum=False,
                create_constraint=True,
                length=20,
            ),
            nullable=False,
        ),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person")),
        sa.UniqueConstraint("name", name=op.f("uq_person_name")),
    )


def create_score_seen() -> None:
    op.create_table(
        "score_seen",
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("patient_id", sa.Text(), nullable=False),
        sa.Column("snapshot_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_score_seen_person_id_person")),
        sa.PrimaryKeyConstraint("person_id", "patient_id", "snapshot_at", "task_key", name=op.f("pk_score_seen")),
    )


def create_study() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column(
            "status",
            sa.Enum("draft", "open", "locked", name="status", native_enum=False, create_constraint=True, length=20),
            nullable=False,
        ),
        sa.Column("rubric_version", sa.Integer(), nullable=False),
        sa.Column("n_slots", sa.Integer(), nullable=False),
        sa.Column("order_seed", sa.BigInteger(), nullable=False),
        sa.Column("hold_hours", sa.Double(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("is_calibration", sa.Boolean(), nullable=False),
        sa.Column("selection_design", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("locked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("n_slots >= 1", name=op.f("ck_study_some_slot")),
        sa.ForeignKeyConstraint(["run_id"], ["scoring_run.id"], name=op.f("fk_study_run_id_scoring_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
        sa.UniqueConstraint("slug", name=op.f("uq_study_slug")),
    )


def create_rubric() -> None:
    op.create_table(
        "rubric",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("guidelines", sa.Text(), nullable=False),
        sa.Column("answer_texts", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_rubric_study_id_study")),
        sa.PrimaryKeyConstraint("study_id", "version", name=op.f("pk_rubric")),
    )


def create_study_reader() -> None:
    op.create_table(
        "study_reader",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_study_reader_person_id_person")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_study_reader_study_id_study")),
        sa.PrimaryKeyConstraint("study_id", "person_id", name=op.f("pk_study_reader")),
        sa.UniqueConstraint("study_id", "number", name=op.f("uq_study_reader_study_id_number")),
    )


def create_study_case() -> None:
    op.create_table(
        "study_case",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("instance_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("repeat_number", sa.Integer(), nullable=False),
        sa.Column("patient_id", sa.Text(), nullable=False),
        sa.Column("snapshot_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=False),
        sa.Column(
            "decision",
            sa.Enum("omission", "commission", name="decision", native_enum=False, create_constraint=True, length=20),
            nullable=False,
        ),
        sa.Column("stratum", sa.Text(), nullable=False),
        sa.Column("stratum_size", sa.Integer(), nullable=False),
        sa.Column("inclusion_probability", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "inclusion_probability > 0 AND inclusion_probability <= 1", name=op.f("ck_study_case_probability")
        ),
        sa.ForeignKeyConstraint(["instance_id"], ["instance.id"], name=op.f("fk_study_case_instance_id_instance")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_study_case_study_id_study")),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_study_case_task_id_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_case")),
        sa.UniqueConstraint(
            "study_id",
            "instance_id",
            "task_id",
            "repeat_number",
            name=op.f("uq_study_case_study_id_instance_id_task_id_repeat_number"),
        ),
        sa.UniqueConstraint("study_id", "number", name=op.f("uq_study_case_study_id_number")),
    )
    with op.batch_alter_table("study_case", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_study_case_instance_id"), ["instance_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_study_case_patient_id_snapshot_at_task_key"),
            ["patient_id", "snapshot_at", "task_key"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_study_case_task_id"), ["task_id"], unique=False)


def create_case_score() -> None:
    op.create_table(
        "case_score",
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("scorer", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("scaled_score", sa.Double(), nullable=False),
        sa.Column("soft_label", sa.Double(), nullable=True),
        sa.Column("support", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["case_id"], ["study_case.id"], name=op.f("fk_case_score_case_id_study_case")),
        sa.PrimaryKeyConstraint("case_id", "scorer", name=op.f("pk_case_score")),
    )


def create_reference_answer() -> None:
    op.create_table(
        "reference_answer",
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("answer", sa.SmallInteger(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["study_case.id"], name=op.f("fk_reference_answer_case_id_study_case")),
        sa.PrimaryKeyConstraint("case_id", name=op.f("pk_reference_answer")),
    )


def create_assignment() -> None:
    op.create_table(
        "assignment",
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("reviewer_id", sa.Integer(), nullable=True),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("put_off_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["case_id"], ["study_case.id"], name=op.f("fk_assignment_case_id_study_case")),
        sa.ForeignKeyConstraint(["reviewer_id"], ["person.id"], name=op.f("fk_assignment_reviewer_id_person")),
        sa.PrimaryKeyConstraint("case_id", "slot", name=op.f("pk_assignment")),
        sa.UniqueConstraint("case_id", "reviewer_id", name=op.f("uq_assignment_case_id_reviewer_id")),
    )
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_assignment_reviewer_id"), ["reviewer_id"], unique=False)


def create_draft() -> None:
    op.create_table(
        "draft",
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("reviewer_id", sa.Integer(), nullable=False),
        sa.Column("answer", sa.SmallInteger(), nullable=True),
        sa.Column(
            "certainty",
            sa.Enum("certain", "uncertain", name="certainty", native_enum=False, create_constraint=True, length=20),
            nullable=True,
        ),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["study_case.id"], name=op.f("fk_draft_case_id_study_case")),
        sa.ForeignKeyConstraint(["reviewer_id"], ["person.id"], name=op.f("fk_draft_reviewer_id_person")),
        sa.PrimaryKeyConstraint("case_id", "reviewer_id", name=op.f("pk_draft")),
    )
    with op.batch_alter_table("draft", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_draft_reviewer_id"), ["reviewer_id"], unique=False)


def create_judgment() -> None:
    op.create_table(
        "judgment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("reviewer_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("answer", sa.SmallInteger(), nullable=True),
        sa.Column(
            "certainty",
            sa.Enum("certain", "uncertain", name="certainty", native_enum=False, create_constraint=True, length=20),
            nullable=True,
        ),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("form_key", sa.Text(), nullable=False),
        sa.Column("judged_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("active_seconds", sa.Double(), nullable=True),
        sa.Column("saw_score_before", sa.Boolean(), nullable=False),
        sa.Column("rubric_version", sa.Integer(), nullable=False),
        sa.CheckConstraint("answer IS NULL OR answer <> 0 OR reason <> ''", name=op.f("ck_judgment_reason_given")),
        sa.CheckConstraint("answer BETWEEN 0 AND 3", name=op.f("ck_judgment_answer_code")),
        sa.CheckConstraint("version >= 1", name=op.f("ck_judgment_version_from_one")),
        sa.ForeignKeyConstraint(["case_id"], ["study_case.id"], name=op.f("fk_judgment_case_id_study_case")),
        sa.ForeignKeyConstraint(["reviewer_id"], ["person.id"], name=op.f("fk_judgment_reviewer_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgment")),
        sa.UniqueConstraint("case_id", "reviewer_id", "version", name=op.f("uq_judgment_case_id_reviewer_id_version")),
        sa.UniqueConstraint("form_key", name=op.f("uq_judgment_form_key")),
    )
    with op.batch_alter_table("judgment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_judgment_reviewer_id"), ["reviewer_id"], unique=False)


def create_adjudication() -> None:
    op.create_table(
        "adjudication",
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("adjudicator_id", sa.Integer(), nullable=False),
        sa.Column("answer", sa.SmallInteger(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("form_key", sa.Text(), nullable=False),
        sa.Column("adjudicated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("answer BETWEEN 0 AND 3", name=op.f("ck_adjudication_answer_code")),
        sa.ForeignKeyConstraint(["adjudicator_id"], ["person.id"], name=op.f("fk_adjudication_adjudicator_id_person")),
        sa.ForeignKeyConstraint(["case_id"], ["study_case.id"], name=op.f("fk_adjudication_case_id_study_case")),
        sa.PrimaryKeyConstraint("case_id", "version", name=op.f("pk_adjudication")),
        sa.UniqueConstraint("form_key", name=op.f("uq_adjudication_form_key")),
    )
    with op.batch_alter_table("adjudication", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_adjudication_adjudicator_id"), ["adjudicator_id"], unique=False)


def create_audit_event() -> None:
    op.create_table(
        "audit_event",
        sa.Column(
            "sequence", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("previous_hash", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_audit_event")),
        sa.UniqueConstraint("hash", name=op.f("uq_audit_event_hash")),
    )
