"""The outbox's table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Makes it."""

    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [
        migrations.CreateModel(
            name="OutboxRow",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=256)),
                ("body", models.TextField()),
                ("created_ms", models.BigIntegerField()),
                ("retry_ms", models.BigIntegerField(db_default=0, default=0)),
                ("error", models.TextField(null=True)),
            ],
            options={"verbose_name": "outbox row", "db_table": "duetime_outbox"},
        )
    ]
